"""Priorities are any numbers; the kernel takes whole ones from fixed ranges.

Each function maps priorities to the range from ``worst`` to ``best`` (either may be the larger).
"""

from collections.abc import Mapping
from math import log
from typing import TypeVar

from slackwater.core.entities import Scale

Key = TypeVar("Key")

NICE_RATIO = 1.25  # CPU time of two threads whose nice values differ by one
# Two priorities further apart than this are the same to any kernel mechanism; it is also what an
# empty queue (zero) counts as before a logarithm.
SPAN = 1e6


def min_max(priorities: Mapping[Key, float], worst: float, best: float) -> dict[Key, float]:
    """Stretch or squeeze the whole range; where all are equal, all get the best.

    >>> min_max({"a": 0, "b": 5, "c": 10}, 19, -20)
    {'a': 19.0, 'b': -0.5, 'c': -20.0}
    """
    if not priorities:
        return {}
    low, high = min(priorities.values()), max(priorities.values())
    if high == low:
        return dict.fromkeys(priorities, best)
    spread = high - low
    return {k: worst + (best - worst) * ((p - low) / spread) for k, p in priorities.items()}


def logarithmic(priorities: Mapping[Key, float], worst: float, best: float) -> dict[Key, float]:
    """Scale the logarithms to the range, for priorities that span decades.

    >>> logarithmic({"a": 1, "b": 16, "c": 256}, 0, 2)
    {'a': 0.0, 'b': 1.0, 'c': 2.0}
    """
    return min_max(logs(priorities), worst, best)


def logs(priorities: Mapping[Key, float]) -> dict[Key, float]:
    """Return natural logarithms; what is not above zero counts as the largest ÷ ``SPAN``.

    >>> logs({"empty": 0.0, "full": 1.0})["empty"] == -log(SPAN)
    True
    """
    high = max(priorities.values(), default=0.0)
    if high <= 0:
        return dict.fromkeys(priorities, 0.0)
    floor = log(high) - log(SPAN)
    return {key: max(log(p), floor) if p > 0 else floor for key, p in priorities.items()}


def nice_by_ratio(priorities: Mapping[Key, float], worst: int, best: int) -> dict[Key, float]:
    """Return nice values under which CPU time is split in the ratio of the priorities.

    ``n = best + (log p_max − log p) / log 1.25``; squeezed where that does not fit the range.

    >>> nice_by_ratio({"a": 1.25, "b": 1.0}, worst=19, best=-20)
    {'a': -20.0, 'b': -19.0}
    """
    spread = logs(priorities)
    if not spread:
        return {}
    high = max(spread.values())
    wanted = {key: best + (high - value) / log(NICE_RATIO) for key, value in spread.items()}
    if max(wanted.values()) <= worst:
        return wanted
    return min_max({key: -value for key, value in wanted.items()}, worst, best)


def normalise(
    priorities: Mapping[Key, float], scale: Scale, worst: float, best: float
) -> dict[Key, float]:
    """Normalise by the scale of the policy; a ratio is kept as far as the range goes.

    >>> normalise({"a": 3.0, "b": 1.0}, "ratio", 2, 900)
    {'a': 900.0, 'b': 300.0}
    """
    if scale == "linear":
        return min_max(priorities, worst, best)
    if scale == "log":
        return logarithmic(priorities, worst, best)
    high = max(priorities.values(), default=0.0)
    if high <= 0:
        return dict.fromkeys(priorities, best)
    return {key: max(worst, best * value / high) for key, value in priorities.items()}
