"""Knobs: a small file for each source of ours, through which a grant tells how much to read.

Whoever receives the grant writes the knob before the query goes on; the source reads it when Spark
asks for its latest offset. A missing or broken file means "no limit": knobs fail open.
"""

import json
import threading
import time
import uuid
from collections.abc import Iterable
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark.sql import DataFrame
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.common.files import replace_text
from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.plans.tree import analyzed_plan, source_options
from slackwater.ipc.unix_socket import runtime_dir

# A batch that shall read nothing begins at once; after this a forgotten zero holds nobody up.
NOTHING_FOR_S = 1.0


def knob_option(chosen: str | None) -> dict[str, str]:
    """Where a source looks for its limit: the user's file, or one that its fleet will find."""
    if chosen is not None:
        return {"knob": str(Path(chosen).absolute())}
    try:
        return {"knob": str(_folder() / f"{uuid.uuid4().hex}.json")}
    except (OSError, SlackwaterError):  # no place for such files: no limits
        return {}


def find_knobs(query: DataFrame | StreamingQuery) -> tuple[Path, ...]:
    """Of a query's sources; not those that their users turn themselves."""
    try:
        plan = (
            analyzed_plan(query)
            if isinstance(query, StreamingQuery)
            else query._jdf.queryExecution().analyzed()
        )
        found = sorted(map(Path, source_options(plan, "knob")))
        return tuple(path for path in found if path.parent == _folder())
    except (Py4JError, SlackwaterError, AttributeError, KeyError, TypeError, ValueError, OSError):
        return ()  # no limit, then


def _folder() -> Path:
    return runtime_dir().absolute() / "knobs"


class Knobs:
    """The knobs of some queries. Grants turn them in one thread, queries come and go in others.

    A source that two queries read has one file for both, and so nobody's limit. That is marked by
    another file beside it, for good, because a source gate's knobs are in a process of their own.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[str, tuple[Path, ...]] = {}  # by query
        self._set: dict[str, int | None] = {}  # what was done, so that nothing is done twice

    def link(self, query: str, files: Iterable[Path]) -> None:
        """From now on these are the query's; a grant may have come already."""
        with self._lock:
            own = tuple(sorted(files))
            if self._files.get(query) == own:
                return
            self._files[query] = own
            others = {path for q, theirs in self._files.items() if q != query for path in theirs}
            for path in others.intersection(own):
                _leave_to_nobody(path)
            if self._set.get(query) is not None:
                self._write(query)

    def set_rows(self, query: str, rows: int | None) -> None:
        """Limit the next batch to ``rows``; ``None`` lifts the limit, 0 reads nothing for once."""
        with self._lock:
            if rows != 0 and query in self._set and self._set[query] == rows:
                return
            self._set[query] = rows
            self._write(query)

    def forget(self, query: str, goes_on: bool = False) -> None:
        """The query has ended, or goes on without us."""
        with self._lock:
            self.set_rows(query, None)
            for path in self._files.pop(query, ()):
                if goes_on:
                    _leave_to_nobody(path)
            self._set.pop(query, None)

    def clear(self) -> None:
        """Lift every limit."""
        with self._lock:
            for query in self._files:
                self._set[query] = None
                self._write(query)

    def _write(self, query: str) -> None:
        rows = self._set[query]
        until_s = time.time() + NOTHING_FOR_S if rows == 0 else None
        for path in self._files.get(query, ()):
            if rows is None:
                path.unlink(missing_ok=True)
            elif not _nobodys(path).exists():
                path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                replace_text(path, json.dumps({"rows": rows, "until": until_s}))


def _nobodys(path: Path) -> Path:
    return path.with_suffix(".shared")


def _leave_to_nobody(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    _nobodys(path).touch()
    path.unlink(missing_ok=True)
