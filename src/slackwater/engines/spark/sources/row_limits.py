"""Row limits of queries: a grant says how much to read, the directives of its sources carry it."""

import logging
import threading
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.plans.tree import analyzed_plan, source_options
from slackwater.engines.spark.sources.directives import DirectivesFile

log = logging.getLogger("slackwater.fleet")

# A batch that shall read nothing begins at once; after this a forgotten zero holds nobody up.
NOTHING_FOR_S = 1.0


def find_limited(query: DataFrame | StreamingQuery) -> tuple[Path, ...]:
    """Return the directives of a query's sources, but for those that their users limit."""
    try:
        plan = (
            analyzed_plan(query)
            if isinstance(query, StreamingQuery)
            else query._jdf.queryExecution().analyzed()
        )
        found = source_options(plan, "directives", "knob")
    except (Py4JError, SlackwaterError, AttributeError, KeyError, TypeError, ValueError, OSError):
        return ()  # no limit, then
    paths = {each["directives"] for each in found if "directives" in each and "knob" not in each}
    return tuple(sorted(map(Path, paths)))


class RowLimits:
    """The limits of some queries. Grants set them in one thread, queries come and go in others.

    A source that two queries read has one file for both, and so nobody's limit, for good: a source
    gate sets its limits in a process of its own, and knows nothing of the other query.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[str, tuple[DirectivesFile, ...]] = {}  # by query
        self._set: dict[str, int | None] = {}  # what was done, so that nothing is done twice

    def link(self, query: str, paths: Iterable[Path]) -> None:
        """Say which sources are the query's; a grant may have come already."""
        with self._lock:
            own = tuple(map(DirectivesFile, sorted(paths)))
            if self._files.get(query) == own:
                return
            self._files[query] = own
            others = {file for q, theirs in self._files.items() if q != query for file in theirs}
            for file in others.intersection(own):
                file.update(rows=None, until=None, shared=True)
            if self._set.get(query) is not None:
                self._write(query, self._set[query])

    def set_rows(self, query: str, rows: int | None) -> None:
        """Limit the next batch to ``rows``; ``None`` lifts the limit, 0 reads nothing for once."""
        with self._lock:
            if rows != 0 and query in self._set and self._set[query] == rows:
                return
            self._set.pop(query, None)  # until it is written: what fails is tried again
            self._write(query, rows)

    def forget(self, query: str, goes_on: bool = False) -> None:
        """Lift the limit of a query that has ended, or that goes on without us."""
        with self._lock:
            self.set_rows(query, None)
            for file in self._files.pop(query, ()):
                if goes_on:
                    file.update(shared=True)
                elif not file.read().shared:  # nobody reads it any more
                    file.update(reach_us=0)
            self._set.pop(query, None)

    def clear(self) -> None:
        """Lift every limit; one that cannot be must not keep the others."""
        with self._lock:
            for query in self._files:
                try:
                    self._write(query, None)
                except OSError as error:
                    log.warning("the row limit of %s could not be lifted: %s", query, error)

    def _write(self, query: str, rows: int | None) -> None:
        until_s = time.time() + NOTHING_FOR_S if rows == 0 else None
        for file in self._files.get(query, ()):
            file.update(rows=rows, until=until_s)
        self._set[query] = rows


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
