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

from slackwater.core.files import replace_text
from slackwater.engines.spark.plan_tree import analyzed_plan, source_options
from slackwater.engines.spark.wire import runtime_dir

# A batch that shall read nothing begins at once; after this a forgotten zero holds nobody up.
NOTHING_FOR_S = 1.0


def knob_path(chosen: str | Path | None) -> str:
    """Where a source looks for its limit: the user's file, or one that its fleet will find."""
    if chosen is not None:
        return str(Path(chosen).absolute())
    return str(_folder() / f"{uuid.uuid4().hex}.json")


def find_knobs(query: DataFrame | StreamingQuery) -> tuple[Path, ...]:
    """Of a query's sources; not those that their users turn themselves."""
    try:
        plan = (
            analyzed_plan(query)
            if isinstance(query, StreamingQuery)
            else query._jdf.queryExecution().analyzed()
        )
        found = sorted(map(Path, source_options(plan, "knob")))
    except (Py4JError, AttributeError, KeyError, TypeError, ValueError):  # no limit, then
        return ()
    return tuple(path for path in found if path.parent == _folder())


def _folder() -> Path:
    return runtime_dir() / "knobs"


class Knobs:
    """The knobs of some queries. Grants turn them in one thread, queries come and go in others."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[str, tuple[Path, ...]] = {}  # by query
        self._set: dict[str, int | None] = {}  # what was done, so that nothing is done twice

    def link(self, query: str, files: Iterable[Path]) -> None:
        """From now on these are the query's.

        A source that two queries read has one file for both, and so nobody's limit.
        """
        with self._lock:
            self.forget(query)
            own = set(files)
            for other, theirs in self._files.items():
                shared = own.intersection(theirs)
                if shared:
                    self.set_rows(other, None)
                    self._files[other] = tuple(path for path in theirs if path not in shared)
                    own -= shared
            self._files[query] = tuple(sorted(own))

    def forget(self, query: str) -> None:
        """The query has ended, or is no longer ours."""
        with self._lock:
            self.set_rows(query, None)
            self._files.pop(query, None)
            self._set.pop(query, None)

    def set_rows(self, query: str, rows: int | None) -> None:
        """Limit the next batch to ``rows``; ``None`` lifts the limit, 0 reads nothing for once."""
        with self._lock:
            if rows != 0 and query in self._set and self._set[query] == rows:
                return
            self._set[query] = rows
            for path in self._files.get(query, ()):
                _write(path, rows)

    def clear(self) -> None:
        """Lift every limit."""
        with self._lock:
            for query in self._set:
                self.set_rows(query, None)


def _write(path: Path, rows: int | None) -> None:
    if rows is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    until_s = time.time() + NOTHING_FOR_S if rows == 0 else None
    replace_text(path, json.dumps({"rows": rows, "until": until_s}))
