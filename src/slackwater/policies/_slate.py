"""What Klink knows of all queries, as columns: a decision over thousands takes few operations."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


class Entry(NamedTuple):
    """One query. Those that are not at the gate have no times: all are infinite."""

    overdue_s: float = math.inf  # when it is served whatever its slack
    due_s: float = math.inf  # from when on the next batch finds something
    drain_s: float = math.inf  # from when on it is worth while to read early
    since_s: float = math.inf  # at the gate
    urgency_s: float = math.inf  # the latest start for a result without delay, on average
    lowness: float = 0.0  # minus its priority
    rank: float = math.inf  # those of a lower one are served first
    growth: float = 0.0  # of its cost in a second, where input comes into memory by itself
    told_s: float = 0.0  # when the cost was known


_OVERDUE, _DUE, _DRAIN, _SINCE, _URGENCY, _LOWNESS, _RANK, _GROWTH, _TOLD = range(9)


class Slate:
    """Entries by place: the one that a query has in the snapshot.

    >>> slate = Slate()
    >>> slate.write(0, Entry(overdue_s=9.0, due_s=4.0, since_s=1.0, urgency_s=4.0, rank=1))
    >>> slate.write(1, Entry(overdue_s=9.0, due_s=3.0, since_s=2.0, urgency_s=3.5, rank=1))
    >>> slate.in_order(slate.due(5.0)).tolist(), slate.due(3.5).tolist(), slate.next_s(3.5)
    ([1, 0], [1], 4.0)
    """

    def __init__(self) -> None:
        self._columns = np.empty((len(Entry._fields), 0))
        self._used = self._columns  # without the reserve

    def write(self, place: int, entry: Entry) -> None:
        if place >= self._used.shape[1]:
            self._reserve(place + 1)
        self._used[:, place] = entry

    def next_s(self, after_s: float = -math.inf) -> float:
        """The first of all times after this one."""
        times = self._used[: _DRAIN + 1]
        if after_s == -math.inf:
            return float(times.min(initial=math.inf))
        return float(times.min(where=times > after_s, initial=math.inf))

    def overdue(self, now_s: float) -> Places:
        return _places(self._used[_OVERDUE] <= now_s)

    def waiting(self, now_s: float) -> Places:
        """All at the gate, but for the overdue."""
        return _places((self._used[_SINCE] < math.inf) & (self._used[_OVERDUE] > now_s))

    def due(self, now_s: float) -> Places:
        """Those whose batch would find something, but for the overdue."""
        return _places((self._used[_DUE] <= now_s) & (self._used[_OVERDUE] > now_s))

    def to_drain(self, now_s: float) -> Places:
        """Those that could read early and are neither due nor overdue."""
        drain = self._used[_DRAIN] <= now_s
        return _places(drain & (self._used[: _DUE + 1].min(axis=0) > now_s))

    def first_due_s(self, rank: int) -> float:
        column = self._used[_DUE]
        return float(column.min(where=self._used[_RANK] == rank, initial=math.inf))

    def in_order(self, places: Places) -> Places:
        """By rank, then the important, then the urgent, then those that have waited longest."""
        if len(places) < 2:
            return places
        keys = self._used[_SINCE : _RANK + 1, places]
        since, urgency = keys[0], keys[1]
        keys[1] = np.where(np.isfinite(urgency), urgency, since)
        return places[np.lexsort(keys)]

    def in_order_of(self, slacks: NDArray[np.float64], places: Places, now_s: float) -> Places:
        """The same with slacks of this moment, where costs grow while a query waits."""
        since, urgency, lowness, rank, growth, told = self._used[_SINCE:, places]
        late = self._used[_DUE, places] <= now_s
        slacks = np.where(late, np.minimum(slacks, urgency - now_s), slacks)
        slacks = np.where(np.isfinite(slacks), slacks - growth * (now_s - told), since)
        return places[np.lexsort((since, slacks, lowness, rank))]

    def by_freed(self, freed: list[float], places: Places) -> Places:
        """Those that free most first, ties by urgency."""
        return places[np.lexsort((self._used[_URGENCY, places], -np.asarray(freed)))]

    def _reserve(self, places: int) -> None:
        room = self._columns.shape[1]
        if places > room:
            more = np.repeat(np.array([Entry()]).T, max(16, places, 2 * room) - room, axis=1)
            self._columns = np.concatenate((self._columns, more), axis=1)
        self._used = self._columns[:, :places]


def _places(where: NDArray[np.bool_]) -> Places:
    (places,) = where.nonzero()
    return places
