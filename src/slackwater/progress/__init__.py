"""Progress of windows: when the next one can be completed, and how long a query can wait.

Estimators, one a file, learn the *sweep delay* of an input from its micro-batches; slack comes
from their predictions (:mod:`slackwater.progress.base` explains the terms).

>>> names()
['calibrated', 'linear', 'paper']
>>> load("calibrated", confidence=0.9).confidence
0.9
"""

from slackwater.common.plugins import Family
from slackwater.progress.base import DelayStats, SweepDelay, SweepEstimator
from slackwater.progress.empirical import EmpiricalDelay
from slackwater.progress.normal import NormalDelay
from slackwater.progress.slack import SlackTable, expected_slack, stepwise_slack

__all__ = [
    "DEFAULT",
    "DelayStats",
    "EmpiricalDelay",
    "NormalDelay",
    "SlackTable",
    "SweepDelay",
    "SweepEstimator",
    "expected_slack",
    "load",
    "names",
    "stepwise_slack",
]

DEFAULT = "calibrated"

_family: Family[SweepEstimator] = Family(
    __name__,
    SweepEstimator,  # type: ignore[type-abstract]
    "estimator",
)
names, load = _family.names, _family.load
