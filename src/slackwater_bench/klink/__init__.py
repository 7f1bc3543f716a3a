"""Policies against each other and against Spark itself: how late results of windows are."""
