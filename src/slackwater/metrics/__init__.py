"""Figures derived from what an engine reports: running statistics, all O(1) per observation."""

from slackwater.metrics.batches import Batch, BatchObserver, Coming
from slackwater.metrics.graph import Metric, MetricProvider
from slackwater.statistics.online import BatchCost, Moments, Smoothed

__all__ = [
    "Batch",
    "BatchCost",
    "BatchObserver",
    "Coming",
    "Metric",
    "MetricProvider",
    "Moments",
    "Smoothed",
]
