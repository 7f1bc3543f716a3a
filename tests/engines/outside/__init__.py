"""Tests of engines seen from outside."""
