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

from slackwater.engines.spark.logs.log import Position
from slackwater.engines.spark.logs.offsets import LogOffset

ALWAYS_US = np.iinfo(np.int64).min  # event time of a row that has none: it is never withheld


@dataclass(frozen=True)
class Segment:
    """A stretch of one stream that was planned at one time."""

    first: Position
    last: Position
    planned_us: int
    from_us: int | None = None  # rows below this event time were handed out before
    below_us: int | None = None  # rows from this event time on are withheld

    @property
    def takes_all(self) -> bool:
        return self.from_us is None and self.below_us is None

    def takes(self, event_us: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of its rows belong to the micro-batch.

        >>> Segment(0, 3, planned_us=50, from_us=10, below_us=20).takes(np.array([9, 10, 20]))
        array([False,  True, False])
        """
        counted_us = np.minimum(event_us, self.planned_us)
        taken = np.ones(len(event_us), np.bool_)
        if self.from_us is not None:
            taken &= counted_us >= self.from_us
        if self.below_us is not None:
            taken &= counted_us < self.below_us
        return taken


@dataclass(frozen=True)
class Span(InputPartition):
    """What one task reads: segments of one stream, oldest first."""

    name: str
    segments: tuple[Segment, ...]


def spans(start: LogOffset, end: LogOffset) -> list[Span]:
    """The tasks of the micro-batch between two offsets."""
    found = (Span(name, tuple(_segments(name, start, end))) for name in end.at)
    return [span for span in found if span.segments]


def _segments(name: str, start: LogOffset, end: LogOffset) -> Iterator[Segment]:
    first = (start.at | (end.begin or {}))[name]
    if start.ceiling_us != end.ceiling_us:
        yield from _withheld(name, start, end)
    if first != end.at[name]:
        yield Segment(first, end.at[name], end.planned_us, below_us=end.ceiling_us)


def _withheld(name: str, start: LogOffset, end: LogOffset) -> Iterator[Segment]:
    """Rows read before of which the new ceiling lets more through."""
    stops = [held.first for held in start.held[1:]] + [start.at]
    for held, stop in zip(start.held, stops, strict=True):
        if name in stop and name in held.first and held.first[name] != stop[name]:
            yield Segment(
                held.first[name], stop[name], held.planned_us, start.ceiling_us, end.ceiling_us
            )
