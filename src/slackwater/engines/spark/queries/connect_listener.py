"""Hears of the queries of a Spark Connect session, and stops hearing without waiting for ever."""

import contextlib
import json
import logging
import threading
from functools import partial
from typing import Any

from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.query import StreamingQueryManager

from slackwater.common.exceptions import first_line
from slackwater.common.limited import within
from slackwater.engines.spark.progress import batch_end_s, known_progress
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.ipc.client import Link
from slackwater.ipc.messages import Done, Progress

log = logging.getLogger("slackwater.fleet")


class ConnectListener(StreamingQueryListener):
    """Tells registry and controller what Connect says of the session's queries."""

    def __init__(self, registry: Registry, link: Link) -> None:
        self._registry = registry
        self._link = link

    def onQueryStarted(self, event: Any) -> None:
        self._begin(event.name, str(event.runId))

    def onQueryProgress(self, event: Any) -> None:
        run, progress = str(event.progress.runId), json.loads(event.progress.json)
        if self._registry.of_run(run) is None:
            # Only the client that starts a query is told that it has begun. Where another run is
            # known this is the last word of an earlier one.
            known = self._registry.get(progress.get("name") or "")
            if known is not None and known.unstarted:
                self._begin(known.name, run)
        record, told = self._present(run), known_progress(progress)
        if record is None or told is None:
            return
        self._link.send(Progress(record.name, told))
        if told.duration_ms.trigger_execution is not None:
            self._link.send(Done(record.name, batch_end_s(told)))

    def onQueryIdle(self, event: Any) -> None:
        record = self._present(str(event.runId))
        if record is not None:
            self._link.send(Done(record.name))

    def onQueryTerminated(self, event: Any) -> None:
        self._registry.end(str(event.runId), event.exception)

    def _begin(self, name: str | None, run: str) -> None:
        begun = self._registry.begin(None, name, "", run)
        if begun is not None:  # the controller knows when it stands at its gate
            starting = (State.STARTING,)
            self._registry.update(begun.name, run=run, when=starting, state=State.ACTIVE)

    def _present(self, run: str) -> QueryRecord | None:
        """Return the query that has this run now."""
        record = self._registry.of_run(run)
        return record if record is not None and record.present and record.run == run else None


def remove_listener(
    streams: StreamingQueryManager, listener: StreamingQueryListener, limit_s: float
) -> None:
    """Take a listener off; what cannot be done in time is logged."""
    try:
        within(limit_s, partial(_remove, streams, listener))
    except Exception as error:  # the server may be gone
        log.warning("the fleet's listener was not taken off: %s", first_line(str(error)))


def _remove(streams: StreamingQueryManager, listener: StreamingQueryListener) -> None:
    hearing = _hearing(streams, listener)
    streams.removeListener(listener)
    if hearing is not None:
        hearing.join()


def _hearing(
    streams: StreamingQueryManager, listener: StreamingQueryListener
) -> threading.Thread | None:
    """Take the thread that hears events from PySpark, if it is to end with this listener.

    Up to 4.3 PySpark waits for it while it holds the lock that the thread needs for each event:
    one that is on its way, and neither goes on, not even when Python ends.
    """
    with contextlib.suppress(AttributeError):  # another PySpark
        bus: Any = streams._sqlb  # type: ignore[attr-defined]
        with bus._lock:
            if bus._listener_bus == [listener]:
                thread, bus._execution_thread = bus._execution_thread, None
                return thread  # type: ignore[no-any-return]
    return None
