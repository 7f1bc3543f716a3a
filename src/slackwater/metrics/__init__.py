"""Figures derived from what an engine reports: all O(1) per observation."""

from slackwater.metrics.batches import Batch, BatchObserver, Coming
from slackwater.metrics.graph import Metric, MetricProvider

__all__ = [
    "Batch",
    "BatchObserver",
    "Coming",
    "Metric",
    "MetricProvider",
]
