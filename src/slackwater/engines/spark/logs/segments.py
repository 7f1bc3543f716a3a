"""Segments of a log between queries: files named by the micro-batch that wrote them.

``000000012-70000-3400.arrow`` has the 3,400 rows of micro-batch 12, after 70,000 others. A
micro-batch that runs again finds its segment and leaves it alone, so a log has every row once,
whatever was killed when.
"""

import json
import os
import re
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from slackwater.core.errors import UsageError
from slackwater.core.files import replace_text

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


def segments(folder: Path) -> list[Segment]:
    """All of a log, oldest first."""
    names = (_NAME.fullmatch(name) for name in os.listdir(folder))
    found = [Segment(folder / m[0], int(m[1]), int(m[2]), int(m[3])) for m in names if m]
    return sorted(found, key=lambda segment: segment.batch)


def append(folder: Path, batch: int, rows: pa.Table) -> bool:
    """Write a micro-batch's segment, unless it is there; whether it was written."""
    written = segments(folder)
    if rows.num_rows == 0 or (written and batch <= written[-1].batch):
        return False
    first = written[-1].last if written else 0
    draft = folder / f".{batch:09d}.new"
    with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    _to_disk(draft)
    os.replace(draft, folder / f"{batch:09d}-{first}-{rows.num_rows}.arrow")
    _to_disk(folder)
    return True


def trim(folder: Path, keep_s: float) -> int:
    """Remove segments that were written longer ago, but for the newest; how many."""
    before_s = time.time() - keep_s
    old = [each for each in segments(folder)[:-1] if each.path.stat().st_mtime < before_s]
    for segment in old:
        segment.path.unlink()
    return len(old)


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


def _to_disk(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
