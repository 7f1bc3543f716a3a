"""A look into a query's execution while it stands at its gate.

Between two triggers nothing moves there, so what is read is exact: the last batch's progress (the
listener bus brings it some milliseconds later) and the watermark that the next batch will run with
(progress tells it one batch late, and of several inputs only the first).
"""

import json
import logging
import re
from typing import Any

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject

log = logging.getLogger("slackwater.fleet")

_TRACKER = "org.apache.spark.sql.execution.streaming.runtime.WatermarkTracker"
_PARTS = "operatorToWatermarkMap"


class Peek:
    """What one execution shows. A Spark that hides something is asked only once."""

    def __init__(self, handles: Handles, execution: JavaObject) -> None:
        self._handles = handles
        self._execution = execution
        self._parts: JavaObject = None  # the field with the watermarks of the inputs
        self._batch = -1  # the last one whose progress was read
        self._blind = False

    def progress(self) -> dict[str, Any] | None:
        """Of the last batch, once; ``None`` when none has ended since."""
        try:
            last = self._execution.lastProgress()
            if last is None or last.batchId() == self._batch:
                return None
            self._batch = last.batchId()
            found: dict[str, Any] = json.loads(last.json())
            return found
        except Exception as error:  # a query that is ending; its arrival must be told all the same
            log.info("no progress of a query that stands at its gate: %s", error)
            return None

    def watermarks_ms(self) -> tuple[int | None, list[int]]:
        """Of the next batch, and of each watermark in the plan that it is made of."""
        if self._blind:
            return None, []
        try:
            tracker = self._execution.watermarkTracker()
            if tracker is None:  # made by the first trigger
                return None, []
            if self._parts is None:
                self._parts = self._handles.type(_TRACKER).getDeclaredField(_PARTS)
                self._parts.setAccessible(True)
            parts = _by_operator(self._parts.get(tracker).toString())
            return int(tracker.currentWatermark()), parts
        except Exception as error:
            self._blind = True
            reason = str(error).splitlines()[0]
            log.warning("this Spark does not show the next watermark (%s); going without", reason)
            return None, []


def _by_operator(text: str) -> list[int]:
    """Values of a Scala map in the order of its keys: one call instead of one for each entry.

    An input without events has none yet, which counts as the epoch.

    >>> _by_operator("HashMap(6c-1 -> Some(700), 48-9 -> Some(500), 7a-2 -> None)")
    [500, 700, 0]
    """
    pairs = re.findall(r"([\w-]+) -> (?:Some\((-?\d+)\)|None)", text)
    return [int(value or 0) for _, value in sorted(pairs)]
