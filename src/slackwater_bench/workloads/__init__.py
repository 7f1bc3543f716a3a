"""Benchmarks, one a file, each with its own ground truth.

Nothing is imported here: a process that only generates rows must not load the queries.
"""
