"""Klink beside Spark's Real-Time Mode and Flink: the same topics, the same windows, one judge."""
