"""Benchmarks: what a session costs, and how policies compare."""
