"""How large a share of its rows a result needs.

Rows are kept independently of each other, each with probability pi: because it was sampled, and
because it arrived in time. The variance of a sum is then ``sum(v^2) * (1 / pi - 1)``. The factor
``room = 1 / pi - 1`` is what a result with many rows can afford and one with few cannot: for a mean
the condition ``z * sqrt(room * cv^2 / N) <= error`` is the thesis's equation 4.4 with n = pi * N.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import bdtr

from slackwater.sampling.promise import Promise

Floats = NDArray[np.float64]

MOST_ROOM = 1e3  # a sample of a thousandth; more is no use
LEAST_ROOM = 1e-9  # all rows
FEW_ROWS = 30  # a sample below this is no ground for a normal interval
_EXACT_ROWS = 1200  # counts up to this size are looked up, larger ones are normal enough


def room_for(variation: Floats, rows: Floats, promise: Promise) -> Floats:
    """The most room for an estimate whose relative variance is ``variation * room / rows``.

    >>> promise = Promise(error=0.05)
    >>> float((1 / (1 + room_for(np.array([1.0]), np.array([100.0]), promise)))[0].round(2))
    0.94
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        room = promise.error**2 * rows / (promise.z**2 * variation)
    return np.clip(np.nan_to_num(room, nan=MOST_ROOM, posinf=MOST_ROOM), LEAST_ROOM, MOST_ROOM)


def room_for_few(room: Floats, rows: Floats, promise: Promise) -> Floats:
    """Less room where the sample would be too small to know its own spread: then take all rows."""
    sampled = rows / (1 + room)
    return np.where(sampled < FEW_ROWS, np.minimum(room, room_for_all(rows, promise)), room)


def room_for_all(rows: Floats, promise: Promise) -> Floats:
    """With so little room no row at all is missing, with the promised probability."""
    delta = 1 - promise.confidence
    return np.clip(-np.expm1(np.log1p(-delta) / np.maximum(rows, 1.0)), LEAST_ROOM, MOST_ROOM)


def room_for_count(rows: Floats, promise: Promise) -> Floats:
    """Of a count: exact for small ones, which are anything but normal.

    >>> few = room_for_count(np.array([10.0]), Promise(error=0.05))
    >>> float((1 / (1 + few))[0].round(3))  # no row of ten may be missing: 0.95 ** 0.1
    0.995
    """
    normal = room_for(np.ones_like(rows), rows, promise)
    sizes, rooms = _count_table(promise)
    return np.where(rows <= sizes[-1], np.interp(rows, sizes, rooms), normal)


@lru_cache(maxsize=16)
def _count_table(promise: Promise) -> tuple[Floats, Floats]:
    """Room by the number of rows, such that every smaller room would do as well."""
    sizes = np.unique(np.rint(np.geomspace(1, _EXACT_ROWS, 120)))
    rooms = np.geomspace(1e-6, 10.0, 500)
    shares = 1 / (1 + rooms)
    low = np.ceil(np.outer(sizes * (1 - promise.error), shares) - 1e-9)
    high = np.minimum(np.floor(np.outer(sizes * (1 + promise.error), shares) + 1e-9), sizes[:, None])
    within = _below(high, sizes, shares) - _below(low - 1, sizes, shares)
    broken = within < promise.confidence
    first = np.where(broken.any(axis=1), broken.argmax(axis=1), len(rooms))
    return sizes, np.where(first > 0, rooms[np.maximum(first - 1, 0)], LEAST_ROOM)


def _below(most: Floats, sizes: Floats, shares: Floats) -> Floats:
    """Probability of at most so many rows of a window of each size, kept with each share."""
    inside = bdtr(np.maximum(most, 0.0), sizes[:, None].astype(int), shares[None, :])
    return np.where(most < 0, 0.0, np.nan_to_num(inside, nan=1.0))
