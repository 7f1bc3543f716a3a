"""Segments of a log between queries: files named by the micro-batch that wrote them.

``000000012-3400.arrow`` has the 3,400 rows of micro-batch 12. A micro-batch that runs again finds
its segment and leaves it alone, so a log has every row once, whatever was killed when.
"""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from slackwater.core.errors import UsageError

OWNER = "owner.json"
_NAME = re.compile(r"(\d{9})-(\d+)\.arrow")


@dataclass(frozen=True)
class Segment:
    """The rows of one micro-batch."""

    path: Path
    batch: int
    rows: int
    first: int  # rows of the log before it

    @property
    def last(self) -> int:
        return self.first + self.rows

    def table(self) -> pa.Table:
        with pa.memory_map(str(self.path)) as file:
            return pa.ipc.open_file(file).read_all()


def segments(folder: Path) -> list[Segment]:
    """All of a log, oldest first."""
    names = (_NAME.fullmatch(name) for name in os.listdir(folder))
    found = sorted((int(m[1]), int(m[2]), m[0]) for m in names if m is not None)
    listed, before = [], 0
    for batch, rows, name in found:
        listed.append(Segment(folder / name, batch, rows, before))
        before += rows
    return listed


def append(folder: Path, batch: int, rows: pa.Table) -> bool:
    """Write a micro-batch's segment, unless it is there; whether it was written."""
    if any(folder.glob(f"{batch:09d}-*.arrow")) or rows.num_rows == 0:
        return False
    draft = folder / f".{batch:09d}.new"
    with pa.OSFile(str(draft), "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
        writer.write_table(rows)
    _to_disk(draft)
    os.replace(draft, folder / f"{batch:09d}-{rows.num_rows}.arrow")
    _to_disk(folder)
    return True


def claim(folder: Path, query_id: str) -> None:
    """A log has one writer for good: micro-batches of another would have the same numbers."""
    path = folder / OWNER
    try:
        owner = json.loads(path.read_text())["query"]
    except FileNotFoundError:
        draft = path.with_suffix(".new")
        draft.write_text(json.dumps({"query": query_id}))
        os.replace(draft, path)
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
