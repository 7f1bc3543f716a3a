"""Slackwater: progress-aware scheduling for many Spark Structured Streaming queries."""

__version__ = "0.1.0"
