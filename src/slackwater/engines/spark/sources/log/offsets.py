"""How far a query has read: positions in every stream, and which rows were withheld so far.

A ledger's *event-time ceiling* withholds rows: with the ceiling ``c``, a query has been handed the
rows before its positions whose event time lies below ``c``. What a micro-batch gets is then a
function of its two offsets alone: between positions and ceilings ``(p1, c1)`` and ``(p2, c2)`` the
rows from ``p1`` to ``p2`` with an event time below ``c2``, and the rows before ``p1`` with one in
``[c1, c2)``, which were withheld until now.

A row that was planned at time ``t`` counts as no younger than ``t`` and a tolerated skew of clocks,
whatever its event time says. So only what was planned at ``c`` less that skew or later can contain
withheld rows, and the offset keeps where that began: nothing else has to be read again.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater.engines.spark.session.versions import InputPartition
from slackwater.engines.spark.sources.base import Ints, Offset
from slackwater.engines.spark.sources.log.log import Position, Positions
from slackwater.quality.rates import EVERYTHING, KeepRates
from slackwater.sampling.ledger import Ledger

SKEW_US = 5_000_000  # how far ahead of ours a producer's clock may be


@dataclass(frozen=True)
class Held:
    """Rows of one earlier micro-batch some of which may be withheld."""

    planned_us: int
    horizon_us: int  # when that micro-batch began to be planned, all that arrived by then was read
    first: Positions  # where that micro-batch began; the next one began where it ended

    def json(self) -> list[Any]:
        return [self.planned_us, self.horizon_us, self.first]


@dataclass(frozen=True)
class LogOffset:
    """What Spark keeps in its checkpoint."""

    rows: int  # before the positions, in all streams
    planned_us: int  # when the micro-batch that ends here was planned; never goes back
    horizon_us: int  # all rows that arrived until then lie before the positions
    at: Positions
    begin: Positions | None = None  # of streams that the offset before does not know for sure
    is_initial: bool = False  # made anew whenever Spark starts without a committed micro-batch
    ledger: Ledger | None = None  # None: rows are neither withheld nor sampled
    held: tuple[Held, ...] = ()  # oldest first
    keep: KeepRates = EVERYTHING  # how much of the micro-batch that ends here is not shed

    @classmethod
    def parse(cls, json: Offset) -> "LogOffset":
        return cls(
            rows=json["n"],
            planned_us=json["t"],
            horizon_us=json["h"],
            at=json["at"],
            begin=json.get("begin"),
            is_initial=json.get("initial", False),
            ledger=Ledger.of_json(json["s"]) if "s" in json else None,
            held=tuple(Held(*entry) for entry in json.get("held", ())),
            keep=KeepRates.of_numbers(json.get("k")),
        )

    def json(self) -> Offset:
        """Write it as Spark takes it. The key ``n`` is what the backlog is computed from."""
        found: Offset = {"n": self.rows, "t": self.planned_us, "h": self.horizon_us, "at": self.at}
        if self.begin:
            found["begin"] = self.begin
        if self.is_initial:
            found["initial"] = True
        if self.ledger is not None:
            found["s"] = self.ledger.to_json()
        if self.held:
            found["held"] = [entry.json() for entry in self.held]
        if self.keep.sheds:
            found["k"] = self.keep.numbers
        return found

    @property
    def ceiling_us(self) -> int | None:
        return None if self.ledger is None else self.ledger.ceiling_us


def still_held(
    start: LogOffset, begin: Positions, at: Positions, planned_us: int, ceiling_us: int | None
) -> tuple[Held, ...]:
    """Return what may hold withheld rows after the micro-batch from ``begin`` to ``at``.

    >>> start = LogOffset(rows=5, planned_us=100, horizon_us=100, at={"s": 5},
    ...                   held=(Held(90, 80, {"s": 2}), Held(100, 90, {"s": 4})))
    >>> ceiling_us = 95 + SKEW_US
    >>> [held.planned_us for held in still_held(start, start.at, {"s": 7}, 130, ceiling_us)]
    [100, 130]
    >>> [held.planned_us for held in still_held(start, start.at, start.at, 130, ceiling_us)]
    [100]
    >>> still_held(start, start.at, {"s": 7}, 130, None)
    ()
    """
    if ceiling_us is None:
        return ()
    new = () if at == begin else (Held(planned_us, start.horizon_us, begin),)
    return tuple(held for held in (*start.held, *new) if held.planned_us + SKEW_US >= ceiling_us)


@dataclass(frozen=True)
class ReadRange:
    """A stretch of one stream that was planned at one time."""

    first: Position
    last: Position
    planned_us: int
    horizon_us: int  # rows here had not been seen to arrive by then
    from_us: int | None = None  # rows below this event time were handed out before
    below_us: int | None = None  # rows from this event time on are withheld

    def takes(self, event_us: Ints) -> NDArray[np.bool_]:
        """Tell which of its rows belong to the micro-batch.

        >>> part = ReadRange(0, 3, planned_us=50, horizon_us=0, from_us=10, below_us=20)
        >>> part.takes(np.array([9, 10, 20]))
        array([False,  True, False])
        """
        counted_us = np.minimum(event_us, self.planned_us + SKEW_US)
        taken = np.ones(len(event_us), np.bool_)
        if self.from_us is not None:
            taken &= counted_us >= self.from_us
        if self.below_us is not None:
            taken &= counted_us < self.below_us
        return taken

    def arrivals(self, told_us: Ints | None, rows: int) -> Ints:
        """Say when rows arrived, as far as the reader of this stream is concerned.

        Not before the horizon: windows may have been closed up to there without them.

        >>> ReadRange(0, 3, planned_us=50, horizon_us=20).arrivals(np.array([10, 30, 60]), 3)
        array([21, 30, 50])
        """
        if told_us is None:
            return np.full(rows, self.planned_us, np.int64)
        return np.clip(told_us, min(self.horizon_us + 1, self.planned_us), self.planned_us)


@dataclass(frozen=True)
class Span(InputPartition):
    """What one task reads: ranges of one stream, oldest first."""

    name: str
    ranges: tuple[ReadRange, ...]
    ledger: Ledger | None = None
    keep: KeepRates = EVERYTHING


def spans(start: LogOffset, end: LogOffset) -> list[Span]:
    """Return the tasks of the micro-batch between two offsets."""
    if start == end:
        return []
    found = (Span(name, tuple(_ranges(name, start, end)), end.ledger, end.keep) for name in end.at)
    return [span for span in found if span.ranges]


def _ranges(name: str, start: LogOffset, end: LogOffset) -> Iterator[ReadRange]:
    if start.ceiling_us != end.ceiling_us:
        yield from _withheld(name, start, end)
    first = (start.at | (end.begin or {}))[name]
    if first != end.at[name]:
        yield ReadRange(
            first, end.at[name], end.planned_us, start.horizon_us, below_us=end.ceiling_us
        )


def _withheld(name: str, start: LogOffset, end: LogOffset) -> Iterator[ReadRange]:
    """Return rows read before of which the new ceiling lets more through."""
    stops = [*(held.first for held in start.held), start.at][1:]
    for held, stop in zip(start.held, stops, strict=True):
        first, last = held.first.get(name), stop.get(name)
        if first is not None and last is not None and first != last:
            yield ReadRange(
                first, last, held.planned_us, held.horizon_us, start.ceiling_us, end.ceiling_us
            )
