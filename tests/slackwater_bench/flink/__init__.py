"""Tests of our own Flink."""
