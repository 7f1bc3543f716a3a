"""Logs of queries: segments, files named by the micro-batch that wrote them, read as one log.

``000000012-70000-3400.arrow`` has the 3,400 rows of micro-batch 12, after 70,000 others. A
micro-batch that runs again finds its segment and leaves it alone, so a log has every row once,
whatever was killed when.

A position is the number of rows before it. An *instance* of a query reads every n-th row; then
positions count only its own.
"""

import json
import os
import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.common.files import replace_text
from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.base import Ints
from slackwater.engines.spark.sources.log.log import (
    LogOptions,
    LogRows,
    Position,
    Positions,
    Stream,
    data_gone,
)

OWNER = "owner.json"
_NAME = re.compile(r"(\d{9})-(\d+)-(\d+)\.arrow")


@dataclass(frozen=True)
class SegmentFile:
    """The rows of one micro-batch."""

    path: Path
    batch: int
    first: int  # rows of the log before it
    rows: int

    @property
    def last(self) -> int:
        return self.first + self.rows

    def table(self) -> pa.Table:
        with pa.memory_map(str(self.path)) as file:
            return pa.ipc.open_file(file).read_all()


def ends(folder: Path) -> tuple[SegmentFile, SegmentFile] | None:
    """Return the oldest and the newest; None of an empty log."""
    names = _names(folder)
    return (_segment(folder, names[0]), _segment(folder, names[-1])) if names else None


def segments_from(folder: Path, position: int) -> Iterator[SegmentFile]:
    """Return segments from the one on that has the row at a position of the log."""
    names = _names(folder)
    place = bisect_right(names, position, key=lambda name: _segment(folder, name).first)
    return (_segment(folder, name) for name in names[max(place - 1, 0) :])


def append(folder: Path, batch: int, rows: pa.Table) -> bool:
    """Write a micro-batch's segment, unless it is there; whether it was written."""
    written = ends(folder)
    if rows.num_rows == 0 or (written is not None and batch <= written[1].batch):
        return False
    first = written[1].last if written is not None else 0
    draft = folder / f".{batch:09d}.new"
    with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    _to_disk(draft)
    os.replace(draft, folder / f"{batch:09d}-{first}-{rows.num_rows}.arrow")
    _to_disk(folder)
    return True


def trim(folder: Path, keep_s: float) -> int:
    """Remove segments that were written longer ago, but for the newest; how many."""
    before_s, removed = time.time() - keep_s, 0
    for name in _names(folder)[:-1]:
        if (folder / name).stat().st_mtime >= before_s:
            break
        (folder / name).unlink()
        removed += 1
    return removed


def claim(folder: Path, query_id: str) -> None:
    """Refuse a second writer of a log: its micro-batches would have the same numbers."""
    path = folder / OWNER
    try:
        owner = json.loads(path.read_text())["query"]
    except FileNotFoundError:
        replace_text(path, json.dumps({"query": query_id}))
        return
    if owner != query_id:
        raise UsageError(
            f"the log {folder} was written from another checkpoint: give the query that "
            "checkpoint again, or write to a new folder"
        )


def _names(folder: Path) -> list[str]:
    """List names, oldest first: they sort as their numbers. A day's log has tens of thousands."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".arrow"))


def _segment(folder: Path, name: str) -> SegmentFile:
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"{folder / name} is no segment of a log: remove it")
    return SegmentFile(folder / name, *(int(number) for number in found.groups()))


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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
        """Return the number of the instance, and how many there are."""
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

    def read(self, name: str, first: Position, last: Position) -> Iterator[LogRows]:
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

    def newest(self, column: str, after: Positions) -> Iterator[pa.ChunkedArray]:
        """Return the rows of each log's last segment, whichever of them is the newest."""
        for name, position in after.items():
            written = ends(self._folders[name]) if name in self._folders else None
            if written is None:
                continue
            segment = written[1]
            mine = np.arange(max(self._mine(segment.first), position), self._mine(segment.last))
            if len(mine):
                places = mine * self._count + self._number - segment.first
                yield segment.table().column(column).take(pa.array(places))

    def _mine(self, rows: int) -> int:
        """Count how many of the first rows of a log are this instance's."""
        return (rows - self._number + self._count - 1) // self._count

    def _rows(self, segment: SegmentFile, mine: Ints) -> LogRows:
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
