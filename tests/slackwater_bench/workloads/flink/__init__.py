"""Tests of workloads for Flink."""
