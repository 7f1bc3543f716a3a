"""Tests of the benchmark through the kernel."""
