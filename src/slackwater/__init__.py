"""Slackwater: progress-aware scheduling for many Spark Structured Streaming queries."""
