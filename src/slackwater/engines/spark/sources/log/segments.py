"""Segments of a log between queries: files named by the micro-batch that wrote them.

``000000012-70000-3400.arrow`` has the 3,400 rows of micro-batch 12, after 70,000 others. A
micro-batch that runs again finds its segment and leaves it alone, so a log has every row once,
whatever was killed when.
"""

import json
import os
import re
import time
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from slackwater.common.files import replace_text
from slackwater.core.errors import UsageError

OWNER = "owner.json"
_NAME = re.compile(r"(\d{9})-(\d+)-(\d+)\.arrow")


@dataclass(frozen=True)
class Segment:
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


def ends(folder: Path) -> tuple[Segment, Segment] | None:
    """The oldest and the newest; None of an empty log."""
    names = _names(folder)
    return (_segment(folder, names[0]), _segment(folder, names[-1])) if names else None


def segments_from(folder: Path, position: int) -> Iterator[Segment]:
    """From the one on that has the row at a position of the log."""
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
    """A log has one writer for good: micro-batches of another would have the same numbers."""
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
    """Oldest first: names sort as their numbers. A day's log has tens of thousands."""
    return sorted(name for name in os.listdir(folder) if name.endswith(".arrow"))


def _segment(folder: Path, name: str) -> Segment:
    found = _NAME.fullmatch(name)
    if found is None:
        raise UsageError(f"{folder / name} is no segment of a log: remove it")
    return Segment(folder / name, *(int(number) for number in found.groups()))


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
