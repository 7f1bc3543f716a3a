"""Definitions of the current accuracy, one a file; a user's own is ``module:Class``.

>>> names()
['lag', 'throughput']
"""

from slackwater.common.plugins import Family
from slackwater.quality.accuracies.base import Accuracy

__all__ = ["Accuracy", "load", "names"]

_family: Family[Accuracy] = Family(__name__, Accuracy, "accuracy")  # type: ignore[type-abstract]
names, load = _family.names, _family.load
