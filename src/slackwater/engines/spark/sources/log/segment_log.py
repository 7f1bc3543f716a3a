"""Logs between queries, as one log. A position is the number of rows before it.

An *instance* of a query reads every n-th row; then positions count only its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.log.errors import data_gone
from slackwater.engines.spark.sources.log.log import Ints, Position, Rows, Stream
from slackwater.engines.spark.sources.log.options import LogOptions
from slackwater.engines.spark.sources.log.segments import Segment, ends, segments_from


@dataclass(frozen=True, kw_only=True)
class SegmentOptions(LogOptions):
    """Which logs, and which instance reads."""

    folders: tuple[str, ...]
    instance: str = "0/1"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.place  # noqa: B018 (refuses what is no instance)

    @property
    def server(self) -> str:
        return "the log"

    @property
    def place(self) -> tuple[int, int]:
        """Number of the instance, and how many there are."""
        number, _, count = self.instance.partition("/")
        if not (number.isdigit() and count.isdigit() and int(number) < int(count)):
            raise UsageError(f"instance is {self.instance!r}; write 0/2 and 1/2 for two of them")
        return int(number), int(count)


@dataclass(frozen=True)
class SegmentStream:
    """What was in a log at one moment."""

    earliest: int
    latest: int
    written_us: int = 0  # when the last segment was

    def missing_after(self, position: Position) -> int | None:
        if position > self.latest:
            return None  # the folder was made anew
        return max(0, self.earliest - int(position))

    def resume(self, position: Position) -> Position:
        return min(max(int(position), self.earliest), self.latest)


class SegmentLog:
    """Folders with segments; a stream is called as its folder."""

    def __init__(self, options: SegmentOptions, schema: pa.Schema) -> None:
        self._folders = {str(folder): Path(folder) for folder in options.folders}
        self._number, self._count = options.place
        self._schema = schema

    def look(self) -> dict[str, Stream]:
        found: dict[str, Stream] = {}
        for name, folder in self._folders.items():
            written = ends(folder)
            if written is None:
                found[name] = SegmentStream(0, 0)
                continue
            oldest, newest = written
            written_us = newest.path.stat().st_mtime_ns // 1000
            places = self._mine(oldest.first), self._mine(newest.last)
            found[name] = SegmentStream(*places, written_us)
        return found

    def ordinal(self, position: Position) -> int:
        return int(position)

    def arrived_us(self, position: Position) -> int | None:
        return None

    def advance(self, name: str, position: Position, rows: int) -> Position:
        return position + rows

    def read(self, name: str, first: Position, last: Position) -> Iterator[Rows]:
        left = int(last) - int(first)
        for segment in segments_from(self._folders[name], int(first) * self._count + self._number):
            if not left:
                return
            low = max(self._mine(segment.first), int(first))
            high = min(self._mine(segment.last), int(last))
            if low < high:
                left -= high - low
                yield self._rows(segment, np.arange(low, high))
        if left:
            raise data_gone(name, f"{left} rows")

    def _mine(self, rows: int) -> int:
        """How many of the first rows of a log are this instance's."""
        return (rows - self._number + self._count - 1) // self._count

    def _rows(self, segment: Segment, mine: Ints) -> Rows:
        numbers = mine * self._count + self._number
        table = segment.table().cast(self._schema)
        taken = table.take(pa.array(numbers - segment.first)).combine_chunks()
        batches = taken.to_batches()
        batch = batches[0] if batches else pa.RecordBatch.from_pylist([], schema=self._schema)
        return SegmentRows(numbers, batch)


class SegmentRows:
    """Rows of one segment."""

    def __init__(self, numbers: Ints, batch: pa.RecordBatch) -> None:
        self.numbers = numbers
        self._batch = batch

    @property
    def arrival_us(self) -> Ints | None:
        return None

    def column(self, name: str) -> pa.Array:
        return self._batch.column(name)

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        return self._batch if kept is None else self._batch.take(pa.array(kept))
