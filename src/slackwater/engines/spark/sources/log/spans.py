"""Which rows a micro-batch has, stream by stream.

Between the offsets with positions and ceilings ``(p1, c1)`` and ``(p2, c2)`` these are the rows
from ``p1`` to ``p2`` with an event time below ``c2``, and the rows before ``p1`` with one in
``[c1, c2)``, which were withheld until now.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql.datasource import InputPartition

from slackwater.engines.spark.sources.log.log import Ints, Position
from slackwater.engines.spark.sources.log.offsets import SKEW_US, LogOffset
from slackwater.quality.rates import EVERYTHING, KeepRates
from slackwater.sampling.ledger import Ledger


@dataclass(frozen=True)
class Segment:
    """A stretch of one stream that was planned at one time."""

    first: Position
    last: Position
    planned_us: int
    horizon_us: int  # rows here had not been seen to arrive by then
    from_us: int | None = None  # rows below this event time were handed out before
    below_us: int | None = None  # rows from this event time on are withheld

    def takes(self, event_us: Ints) -> NDArray[np.bool_]:
        """Which of its rows belong to the micro-batch.

        >>> segment = Segment(0, 3, planned_us=50, horizon_us=0, from_us=10, below_us=20)
        >>> segment.takes(np.array([9, 10, 20]))
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
        """When rows arrived, as far as the reader of this stream is concerned.

        Not before the horizon: windows may have been closed up to there without them.

        >>> Segment(0, 3, planned_us=50, horizon_us=20).arrivals(np.array([10, 30, 60]), 3)
        array([21, 30, 50])
        """
        if told_us is None:
            return np.full(rows, self.planned_us, np.int64)
        return np.clip(told_us, min(self.horizon_us + 1, self.planned_us), self.planned_us)


@dataclass(frozen=True)
class Span(InputPartition):
    """What one task reads: segments of one stream, oldest first."""

    name: str
    segments: tuple[Segment, ...]
    ledger: Ledger | None = None
    keep: KeepRates = EVERYTHING


def spans(start: LogOffset, end: LogOffset) -> list[Span]:
    """The tasks of the micro-batch between two offsets."""
    if start == end:
        return []
    found = (
        Span(name, tuple(_segments(name, start, end)), end.ledger, end.keep) for name in end.at
    )
    return [span for span in found if span.segments]


def _segments(name: str, start: LogOffset, end: LogOffset) -> Iterator[Segment]:
    if start.ceiling_us != end.ceiling_us:
        yield from _withheld(name, start, end)
    first = (start.at | (end.begin or {}))[name]
    if first != end.at[name]:
        yield Segment(
            first, end.at[name], end.planned_us, start.horizon_us, below_us=end.ceiling_us
        )


def _withheld(name: str, start: LogOffset, end: LogOffset) -> Iterator[Segment]:
    """Rows read before of which the new ceiling lets more through."""
    stops = [*(held.first for held in start.held), start.at][1:]
    for held, stop in zip(start.held, stops, strict=True):
        first, last = held.first.get(name), stop.get(name)
        if first is not None and last is not None and first != last:
            yield Segment(
                first, last, held.planned_us, held.horizon_us, start.ceiling_us, end.ceiling_us
            )
