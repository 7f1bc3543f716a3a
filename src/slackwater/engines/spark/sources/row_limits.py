"""How many rows a micro-batch may read: the option's limit, Spark's, and the knob's."""

import json
import time
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows


def default_limit(rows_per_batch: int | None) -> ReadLimit:
    """What a reader's ``getDefaultReadLimit`` answers."""
    return ReadAllAvailable() if rows_per_batch is None else ReadMaxRows(rows_per_batch)


def row_limit(limit: ReadLimit, knob: str | None) -> int | None:
    """Most rows of the next micro-batch; None: no limit.

    >>> row_limit(ReadMaxRows(5), None)
    5
    """
    limits = (getattr(limit, "max_rows", None), read_knob(knob))
    return min((rows for rows in limits if rows is not None), default=None)


def read_knob(path: str | None) -> int | None:
    """The row limit in a knob file; None (no limit) when there is none that makes sense."""
    if path is None:
        return None
    try:
        knob = json.loads(Path(path).read_bytes())
        rows, until_s = knob["rows"], knob.get("until")
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None
    if type(rows) is not int or rows < 0:
        return None
    if rows == 0 and not (isinstance(until_s, float) and time.time() < until_s):
        return None  # a zero without a near end would hold the query up for ever
    return rows


def split_rows(rows: int, backlogs: Sequence[int], turn: int) -> list[int]:
    """Share ``rows`` among streams in proportion to their backlogs.

    What rounding leaves over goes round from ``turn`` on, so that a limit smaller than the number
    of streams starves none of them.

    >>> split_rows(10, [30, 10, 0], 0)
    [8, 2, 0]
    >>> [split_rows(1, [1000, 5], turn) for turn in (0, 1)]
    [[1, 0], [0, 1]]
    """
    waiting = sum(backlogs)
    if rows >= waiting:
        return list(backlogs)
    shares = [rows * backlog // waiting for backlog in backlogs]
    left = rows - sum(shares)
    place = turn
    while left:
        index = place % len(shares)
        if shares[index] < backlogs[index]:
            shares[index] += 1
            left -= 1
        place += 1
    return shares
