"""Knobs: one small file a query, through which a grant tells our sources how much to read.

Whoever receives the grant writes the knob before the query goes on; the source reads it when Spark
asks for its latest offset. A missing or broken file means "no limit": knobs fail open.
"""

import contextlib
import json
import time
from pathlib import Path

from slackwater.core.files import replace_text

# A batch that shall read nothing begins at once; after this a forgotten zero holds nobody up.
NOTHING_FOR_S = 1.0


class Knobs:
    """The knobs of one fleet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._set: dict[str, int | None] = {}  # what was done, so that nothing is done twice

    def path(self, query: str) -> Path:
        """The file that the sources of ``query`` read (their option ``knob``)."""
        return self._folder / f"{query.replace('/', '_')}.json"

    def set_rows(self, query: str, rows: int | None) -> None:
        """Limit the next batch to ``rows``; ``None`` lifts the limit, 0 reads nothing for once."""
        if rows != 0 and query in self._set and self._set[query] == rows:
            return
        path = self.path(query)
        if rows is None:
            path.unlink(missing_ok=True)
            self._set[query] = None
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        until_s = time.time() + NOTHING_FOR_S if rows == 0 else None
        replace_text(path, json.dumps({"rows": rows, "until": until_s}))
        self._set[query] = rows

    def forget_all(self) -> None:
        """Remove what a run before this one may have left."""
        for path in self._folder.glob("*.json"):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Lift every limit."""
        for query in list(self._set):
            self.set_rows(query, None)
        with contextlib.suppress(OSError):  # never made, or somebody's file is in it
            self._folder.rmdir()
