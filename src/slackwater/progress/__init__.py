"""Progress of windows: when the next one can be completed, and how long a query can wait.

Estimators, one a file, learn the *sweep delay* of an input from its micro-batches; slack comes
from their predictions (:mod:`slackwater.progress.base` explains the terms).

>>> names()
['calibrated', 'linear', 'paper']
>>> load("calibrated", confidence=0.9).confidence
0.9
"""

import pkgutil
from difflib import get_close_matches
from importlib import import_module
from typing import Any

from slackwater.core.errors import UsageError
from slackwater.core.loading import load_object
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


def names() -> list[str]:
    """The estimators that come with Slackwater."""
    files = (module.name.replace("_", "-") for module in pkgutil.iter_modules(__path__))
    return [name for name in files if _in_file_of(name) is not None]


def load(name: str, **parameters: Any) -> SweepEstimator:
    """Make an estimator from its name or ``module:Class``; extra keys go to its constructor."""
    estimator_class = load_object(name) if ":" in name else _by_name(name)
    if not (isinstance(estimator_class, type) and issubclass(estimator_class, SweepEstimator)):
        raise UsageError(
            f"{name} is not an estimator: derive it from slackwater.progress.SweepEstimator"
        )
    try:
        return estimator_class(**parameters)
    except TypeError as error:
        raise UsageError(f"estimator {name}: {error}") from error


def _by_name(name: str) -> type[SweepEstimator]:
    known = names()
    found = _in_file_of(name) if name in known else None
    if found is None:
        near = get_close_matches(name, known, n=1)
        hint = f" Did you mean {near[0]!r}?" if near else ""
        raise UsageError(
            f"unknown estimator {name!r}.{hint} Known: {', '.join(known)}, "
            "or your own as module:Class"
        )
    return found


def _in_file_of(name: str) -> type[SweepEstimator] | None:
    """The estimator of that name in the file of that name; other files are parts of estimators."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    for member in vars(module).values():
        if isinstance(member, type) and issubclass(member, SweepEstimator) and member.name == name:
            return member
    return None
