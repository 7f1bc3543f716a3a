"""Careful reading of values that may be missing or broken."""

import math
from typing import Any

import numpy as np

from slackwater.statistics.intervals import Array


def number(value: Any) -> float | None:
    """A finite number, or nothing.

    >>> number(3), number("3"), number(None), number(float("nan")), number(True)
    (3.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def numbers(value: Any) -> Array:
    """Numbers in their order, ``nan`` for what is none, so that places still match.

    >>> numbers([1, None, 2.5]).tolist(), numbers("no list").tolist()
    ([1.0, nan, 2.5], [])
    """
    if not isinstance(value, list | tuple):
        return np.empty(0)
    found = [number(item) for item in value]
    return np.array([math.nan if item is None else item for item in found], dtype=np.float64)


def entries(value: Any) -> list[dict[str, Any]]:
    """The dictionaries of a list.

    >>> entries([{"a": 1}, None, 3]), entries(None)
    ([{'a': 1}], [])
    """
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """A dictionary, empty if the value is none.

    >>> mapping({"a": 1}), mapping(7)
    ({'a': 1}, {})
    """
    return value if isinstance(value, dict) else {}
