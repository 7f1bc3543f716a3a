"""What Klink knows of all queries that wait, and in which order it would serve them."""

import heapq
import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

AGE_S = 0.2  # who is so old counts twice: p99 does not pay for the mean (docs/klink.md)
MANY = 64  # queries from which on whole-array operations are cheaper than a loop


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
    worth: float = 0.0  # of its result: weight × probability
    cost_s: float = 1.0  # of what that still needs
    ripe_s: float = math.inf  # from when on its age counts


class DueQueries(Protocol):
    """Entries by place: the one that a query has in the snapshot."""

    def write(self, place: int, entry: Entry) -> None: ...

    def next_s(self, after_s: float = -math.inf) -> float:
        """Return the first of all times after this one."""

    def overdue(self, now_s: float) -> list[int]: ...

    def due(self, now_s: float) -> list[int]:
        """Return those whose batch would find something, without the overdue.

        In order: by rank, then the important, then the urgent, then those that waited longest.
        """

    def to_drain(self, now_s: float) -> list[int]:
        """Return those that could read early and are neither due nor overdue."""

    def first_due_s(self, rank: int) -> float: ...

    def by_worth(self, now_s: float) -> list[int]:
        """Return those whose batch would find something by worth ÷ cost × age: the same ones.

        At the same age that is Smith's rule, at the same worth and cost the oldest go first.
        """

    def next_due(self, rank: int, now_s: float, count: int) -> list[float]:
        """Return the next so many times at which one of this rank will be due."""


class LoopedDueQueries(DueQueries):
    """A loop over a few queries: a process that wakes for a moment has no caches warm, and then
    every whole-array operation takes as long as a hundred steps of a loop.

    >>> due_queries = LoopedDueQueries()
    >>> due_queries.write(0, Entry(overdue_s=9.0, due_s=4.0, since_s=1.0, urgency_s=4.0, rank=1))
    >>> due_queries.write(1, Entry(overdue_s=9.0, due_s=3.0, since_s=2.0, urgency_s=3.5, rank=1))
    >>> due_queries.due(5.0), due_queries.due(3.5), due_queries.next_s(3.5)
    ([1, 0], [1], 4.0)
    """

    def __init__(self) -> None:
        self._entries: list[Entry] = []

    def write(self, place: int, entry: Entry) -> None:
        while place >= len(self._entries):
            self._entries.append(Entry())
        self._entries[place] = entry

    def next_s(self, after_s: float = -math.inf) -> float:
        next_s = math.inf
        for overdue_s, due_s, drain_s, *_ in self._entries:
            if after_s < overdue_s < next_s:
                next_s = overdue_s
            if after_s < due_s < next_s:
                next_s = due_s
            if after_s < drain_s < next_s:
                next_s = drain_s
        return next_s

    def overdue(self, now_s: float) -> list[int]:
        return [place for place, one in enumerate(self._entries) if one.overdue_s <= now_s]

    def due(self, now_s: float) -> list[int]:
        keys = [
            (one.rank, one.lowness, one.urgency_s, one.since_s, place)
            for place, one in enumerate(self._entries)
            if one.due_s <= now_s < one.overdue_s
        ]
        return [key[-1] for key in sorted(keys)]

    def to_drain(self, now_s: float) -> list[int]:
        return [
            place
            for place, one in enumerate(self._entries)
            if one.drain_s <= now_s < min(one.due_s, one.overdue_s)
        ]

    def first_due_s(self, rank: int) -> float:
        return min((one.due_s for one in self._entries if one.rank == rank), default=math.inf)

    def by_worth(self, now_s: float) -> list[int]:
        keys = []
        for place, one in enumerate(self._entries):
            if one.due_s <= now_s < one.overdue_s:
                age_s = max(0.0, now_s - one.ripe_s)
                score = one.worth / one.cost_s * (AGE_S + age_s)
                keys.append((-score, one.urgency_s, one.since_s, place))
        return [key[-1] for key in sorted(keys)]

    def next_due(self, rank: int, now_s: float, count: int) -> list[float]:
        times = (one.due_s for one in self._entries if one.rank == rank and one.due_s > now_s)
        return heapq.nsmallest(count, times)


_OVERDUE, _DUE, _DRAIN, _SINCE, _URGENCY, _LOWNESS, _RANK, _GROWTH, _TOLD = range(9)
_WORTH, _COST, _RIPE = range(9, 12)


class VectorDueQueries(DueQueries):
    """The same as columns: a decision over thousands takes a few operations on whole arrays."""

    def __init__(self) -> None:
        self._columns = np.empty((len(Entry._fields), 0))
        self._used = self._columns  # without the reserve

    def write(self, place: int, entry: Entry) -> None:
        if place >= self._used.shape[1]:
            self._reserve(place + 1)
        self._used[:, place] = entry

    def next_s(self, after_s: float = -math.inf) -> float:
        times = self._used[: _DRAIN + 1]
        return float(times[times > after_s].min(initial=math.inf))

    def overdue(self, now_s: float) -> list[int]:
        return _list(_places(self._used[_OVERDUE] <= now_s))

    def due(self, now_s: float) -> list[int]:
        places = _places((self._used[_DUE] <= now_s) & (self._used[_OVERDUE] > now_s))
        return _list(places[np.lexsort(self._used[_SINCE : _RANK + 1, places])])

    def to_drain(self, now_s: float) -> list[int]:
        drain = self._used[_DRAIN] <= now_s
        return _list(_places(drain & (self._used[: _DUE + 1].min(axis=0) > now_s)))

    def first_due_s(self, rank: int) -> float:
        column = self._used[_DUE]
        return float(column.min(where=self._used[_RANK] == rank, initial=math.inf))

    def by_worth(self, now_s: float) -> list[int]:
        places = _places((self._used[_DUE] <= now_s) & (self._used[_OVERDUE] > now_s))
        worth, cost, ripe = self._used[_WORTH : _RIPE + 1, places]
        score = worth / cost * (AGE_S + np.maximum(0.0, now_s - ripe))
        since, urgency = self._used[_SINCE : _URGENCY + 1, places]
        return _list(places[np.lexsort((since, urgency, -score))])

    def next_due(self, rank: int, now_s: float, count: int) -> list[float]:
        due = self._used[_DUE]
        due = due[(self._used[_RANK] == rank) & (due > now_s)]
        if len(due) > count > 0:
            due = np.partition(due, count - 1)[:count]
        found: list[float] = np.sort(due)[:count].tolist()
        return found

    def by_slack(self, slacks: NDArray[np.float64], now_s: float) -> list[int]:
        """Return all that wait by the slacks of this moment (by place), without the overdue.

        Where costs grow while a query waits and starting early costs nothing.
        """
        places = _places((self._used[_SINCE] < math.inf) & (self._used[_OVERDUE] > now_s))
        since, urgency, lowness, rank, growth, told = self._used[_SINCE : _TOLD + 1, places]
        slacks = slacks[places]
        due = self._used[_DUE, places] <= now_s
        slacks = np.where(due, np.minimum(slacks, urgency - now_s), slacks)
        slacks = np.where(np.isfinite(slacks), slacks - growth * (now_s - told), since)
        return _list(places[np.lexsort((since, slacks, lowness, rank))])

    def _reserve(self, places: int) -> None:
        room = self._columns.shape[1]
        if places > room:
            more = np.repeat(np.array([Entry()]).T, max(MANY, places, 2 * room) - room, axis=1)
            self._columns = np.concatenate((self._columns, more), axis=1)
        self._used = self._columns[:, :places]


def _places(where: NDArray[np.bool_]) -> NDArray[np.intp]:
    (places,) = where.nonzero()
    return places


def _list(places: NDArray[np.intp]) -> list[int]:
    found: list[int] = places.tolist()
    return found
