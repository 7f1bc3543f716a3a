"""How large a share of its rows a result needs.

Rows are kept independently of each other, each with probability pi: because it was sampled, and
because it arrived in time. The variance of a sum is then ``sum(v^2) * (1 / pi - 1)``. The factor
``room = 1 / pi - 1`` is what a result with many rows can afford and one with few cannot: for a mean
the condition ``z * sqrt(room * cv^2 / N) <= error`` is the thesis's equation 4.4 with n = pi * N.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import nbdtr

from slackwater.sampling.promise import Promise

Floats = NDArray[np.float64]

MOST_ROOM = 1e3  # a sample of a thousandth; more is no use
LEAST_ROOM = 1e-9  # all rows
FEW_ROWS = 30  # a sample below this is no ground for a normal interval
FEW_MISSING = 20.0  # expected missing rows up to which their number is no normal variable
MOST_MISSING = 80  # looked at for those
_BOTH_SIDES = 4.0  # missing rows on average from which it would be improbable that none is
_LATE_PART = 0.2  # of a window, in which rows are late
_EXACT_ROWS = 1200  # counts up to this size are looked up, larger ones are normal enough


def room_for(variation: Floats, rows: Floats, promise: Promise) -> Floats:
    """Return the most room for an estimate of relative variance ``variation * room / rows``.

    >>> promise = Promise(error=0.05)
    >>> float((1 / (1 + room_for(np.array([1.0]), np.array([100.0]), promise)))[0].round(2))
    0.94
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        room = promise.error**2 * rows / (promise.z**2 * variation)
    return np.clip(np.nan_to_num(room, nan=MOST_ROOM, posinf=MOST_ROOM), LEAST_ROOM, MOST_ROOM)


def room_for_few(room: Floats, rows: Floats, promise: Promise) -> Floats:
    """Lessen room where the sample would be too small to know its own spread: take all rows."""
    sampled = rows / (1 + room)
    return np.where(sampled < FEW_ROWS, np.minimum(room, room_for_all(rows, promise)), room)


def room_for_all(rows: Floats, promise: Promise) -> Floats:
    """Return room so small that no row is missing, with the promised probability."""
    delta = 1 - promise.confidence
    return np.asarray(
        np.clip(-np.expm1(np.log1p(-delta) / np.maximum(rows, 1.0)), LEAST_ROOM, MOST_ROOM)
    )


def room_for_count(rows: Floats, promise: Promise) -> Floats:
    """Return the room of a count with which its interval is just short enough.

    >>> rows = np.array([9.0, 12.0])  # 9 and 10 are more than twice 5 % apart, 12 and 13 are not
    >>> (1 / (1 + room_for_count(rows, Promise(error=0.05)))).round(3).tolist()
    [0.997, 0.988]
    """
    normal = room_for(np.ones_like(rows), rows, promise)
    sizes, rooms = _count_table(promise)
    return np.where(rows <= sizes[-1], np.interp(rows, sizes, rooms), normal)


def fits(low: Floats, high: Floats, promise: Promise) -> NDArray[np.bool_]:
    """Tell whether some value is within the promised error of all that an interval holds."""
    return np.asarray(high * (1 - promise.error) <= low * (1 + promise.error) + 1e-9)


def few_missing(kept: Floats, share: Floats, promise: Promise) -> tuple[Floats, Floats]:
    """Return between which numbers of missing rows the true one lies, if ``kept`` were kept.

    Such a number of missing rows is believed with which n kept ones, each with probability p, are
    not improbable (Clopper and Pearson). Numbers of which few are missing on average can only be
    too small; the others can be too small or too large, each with half of the probability.
    """
    delta = 1 - promise.confidence
    kept, share = np.maximum(np.rint(kept), 1.0)[:, None], share[:, None]
    missing = np.arange(MOST_MISSING)[None, :]
    as_few = np.ones((len(kept), MOST_MISSING))  # probability of n or fewer kept
    as_few[:, 1:] = 1 - nbdtr(missing[:, :-1], kept.astype(int) + 1, share)
    as_many = nbdtr(missing, kept.astype(int), share)
    each_side = np.where((kept + missing) * (1 - share) >= _BOTH_SIDES, delta / 2, 0.0)
    believed = (as_few > delta - each_side) & (as_many > each_side)
    low = believed.argmax(axis=1) * 1.0
    last = MOST_MISSING - 1 - believed[:, ::-1].argmax(axis=1)
    return low, np.where(last == MOST_MISSING - 1, MOST_MISSING, last) * 1.0


@lru_cache(maxsize=16)
def _count_table(promise: Promise) -> tuple[Floats, Floats]:
    """Return the largest room by the number of rows.

    Where few are missing, they are late ones, all next to the window's end: a fifth of the rows
    uses up the room, and of some groups more rows than usual are in that fifth.
    """
    sizes = np.unique(np.rint(np.geomspace(1, _EXACT_ROWS, 120)))
    rooms = np.geomspace(1e-4, 2.0, 120)
    share = 1 / (1 + rooms / _LATE_PART)
    found = []
    for size in sizes:
        late = _LATE_PART * size * share
        many = late + np.sqrt(late)
        low, high = few_missing(many, share, promise)
        others = (1 - _LATE_PART) * size
        enough = fits(others + late + low, others + late + high, promise)
        few = many * (1 / share - 1) < FEW_MISSING
        normal = room_for(np.ones(1), np.array([size]), promise)[0]
        enough = np.where(few, enough, rooms <= normal)
        broken = ~enough
        first = int(broken.argmax()) if broken.any() else len(rooms)
        found.append(rooms[first - 1] if first else LEAST_ROOM)
    return sizes, np.array(found)
