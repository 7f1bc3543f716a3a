"""Approximate queries compared: how soon results come, and how far they are off."""
