"""A fleet over Spark Connect: source gates, by public API alone.

The client has no JVM and the server no session of ours, so three processes share the work. On the
server's host ``slackwater controller NAME`` decides, and each query's gate, a Python process that
Spark starts there, asks it. The client states what a query is and passes on the progress that
Connect's listener brings; gates hold and are granted without it.
"""

import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

from slackwater.common.exceptions import first_line
from slackwater.common.listing import unknown_query
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.gates import source as source_gate
from slackwater.engines.spark.plans.explained import discover_explained
from slackwater.engines.spark.progress import batch_end_s, known_progress
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.specs import Duration, query_spec, seconds, stated_wait_s
from slackwater.engines.spark.queries.status import FleetStatus, query_status
from slackwater.engines.spark.session.versions import is_connect, refuse_missing_python_sources
from slackwater.ipc.client import Link, ask
from slackwater.ipc.messages import Done, Gone, Note, Notes, Progress, spec_message
from slackwater.ipc.questions import (
    AskDecisions,
    AskStatus,
    AskWatch,
    Control,
    Controlled,
    Question,
    Status,
    Watched,
)
from slackwater.ipc.unix_socket import socket_path

log = logging.getLogger("slackwater.fleet")

A = TypeVar("A")

ANSWER_S = 5.0  # how long the controller has to be there
LACKS = (
    "over Spark Connect queries are held by source gates: no clock gate, so two batches a window "
    "and no hold() of a query that runs; no session profile; no shedding, no restarts"
)


class ConnectFleet:
    """Holds queries of a Spark Connect session, as a controller on the server's host decides.

    Start that with ``slackwater controller NAME``, as the user that the server runs as.

    Parameters
    ----------
    spark
        A session of ``SparkSession.builder.remote(…)``. The server's Python must have Slackwater.
    name
        The controller's.
    socket
        Its socket on the server's host, as it prints it. Default: where one of this user on this
        machine has it.
    reach
        The path here that leads to that socket, where the server is another machine:
        ``ssh -L REACH:SOCKET host``. Default: the socket itself.
    max_wait
        Seconds, or a text such as ``"2 seconds"``, that a micro-batch waits at most.

    Examples
    --------
    >>> with ConnectFleet(spark, "ads") as fleet:      # doctest: +SKIP
    ...     held = fleet.gate(counts, "counts", priority=2)
    ...     query = held.writeStream.queryName("counts").toTable("counts")
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        *,
        socket: str | Path | None = None,
        reach: str | Path | None = None,
        max_wait: Duration | None = None,
    ) -> None:
        if not is_connect(spark):
            raise UsageError("this session is none of Spark Connect: use slackwater.spark.Fleet")
        refuse_missing_python_sources("the source gate")
        self.spark = spark
        self.name = name
        self.socket = Path(socket) if socket else socket_path(name)  # on the server's host
        self.max_wait = seconds("max_wait", max_wait)
        self._reach = Path(reach) if reach else self.socket
        self._lock = threading.Lock()
        self._records: dict[str, QueryRecord] = {}
        self._link = Link(self._reach, lambda grant: None, self._on_lease)
        self._link.start()
        if not self._link.wait_held(ANSWER_S):  # one that is switched off answers all the same
            self._refuse_unanswered()
        log.warning(LACKS)
        self._listener = _Listener(self)
        spark.streams.addListener(self._listener)

    def gate(
        self,
        df: DataFrame,
        name: str,
        *,
        priority: float = 1.0,
        max_wait: Duration | None = None,
        deadlines: Deadlines | None = None,
        output_mode: str = "append",
        target: Duration | None = None,
    ) -> DataFrame:
        """Return ``df`` behind a source gate: write it with ``writeStream``, named ``name``.

        Parameters
        ----------
        deadlines
            Windows and inputs, instead of those found in what ``df.explain`` says.
        output_mode
            That it will be written with.
        """
        found = deadlines or replace(discover_explained(df), output_mode=output_mode)
        source_gate.refuse_ungatable(name, df, len(found.inputs))
        stated_s = stated_wait_s(max_wait, self.max_wait)
        spec = query_spec(name, priority, stated_s, found, target)
        with self._lock:
            known = self._records.get(name)
            if known is not None and known.state is State.ACTIVE:
                raise UsageError(f"the fleet has a query named {name!r} already, and it runs")
            self._records[name] = QueryRecord(spec, "source", State.STARTING)
        self._tell(spec)
        return source_gate.gate(
            self.spark, df, query=name, socket=self.socket, limited=(), max_wait_s=spec.max_wait_s
        )

    def status(self) -> FleetStatus:
        """Return every query with its state and figures; prints as a table, also in notebooks."""
        found, watched = self._ask(AskStatus(), Status), self._ask(AskWatch(), Watched)
        known = {entry.spec.name: entry for entry in found.queries}
        rows = tuple(query_status(record, known.get(record.name)) for record in self._all())
        controller = "open" if found.open else "running"
        gate = "source (Spark Connect)"
        return FleetStatus(self.name, watched.policy, gate, controller, found.slots, rows)

    def explain(self, last: int = 20, query: str | None = None) -> list[dict[str, Any]]:
        """Return the last decisions, newest first: which query, why, how long it waited."""
        if query is not None and query not in self._records:
            raise unknown_query(query, [record.name for record in self._all()])
        return self._ask(AskDecisions(last=last, query=query), list[dict[str, Any]])

    def off(self) -> None:
        """Open all gates of the controller."""
        self._ask(Control(action="off"), Controlled)

    def on(self) -> None:
        """Hold queries again."""
        self._ask(Control(action="on"), Controlled)

    def stop(self) -> None:
        """Stop the queries that were gated here. The controller goes on."""
        runs = {record.run for record in self._all() if record.state is State.ACTIVE}
        try:
            for query in self.spark.streams.active:
                if str(query.runId) in runs:
                    query.stop()
            # Last: what Python processes have counted is sent with the end of any command, and
            # PySpark 4.3 waits for ever where that is the listener's (SPARK-59135).
            self.spark.streams.removeListener(self._listener)
        finally:  # the server may be gone
            self._link.send(*(Gone(record.name) for record in self._all()))
            self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- to the controller ----------------------------------------------------------------------

    def _ask(self, question: Question, kind: type[A]) -> A:
        return ask(self._reach, question, kind)

    def _refuse_unanswered(self) -> None:
        try:
            self._ask(AskStatus(), Status)
        except SlackwaterError as error:
            self._link.close()
            raise SlackwaterError(
                f"{error}; on the server's host, as its user: slackwater controller {self.name}"
            ) from None

    def _on_lease(self, holds: bool) -> None:
        if holds:  # it may be another controller
            for record in self._all():
                if not record.ended:
                    self._tell(record.spec)
            self._note()

    def _tell(self, spec: QuerySpec) -> None:
        self._link.send(spec_message(spec))

    def _note(self) -> None:
        notes = {
            record.name: Note(record.run, gate="source", error=record.error)
            for record in self._all()
        }
        self._link.send(Notes("Spark Connect", "source", notes))

    def _all(self) -> list[QueryRecord]:
        with self._lock:
            return list(self._records.values())

    # -- from the listener ----------------------------------------------------------------------

    def _began(self, name: str | None, run: str) -> None:
        with self._lock:
            record = self._records.get(name or "")
            if record is None:
                return
            self._records[record.name] = replace(record, state=State.ACTIVE, run=run, error=None)
        self._tell(record.spec)
        self._note()

    def _progressed(self, run: str, progress: dict[str, Any]) -> None:
        if self._of(run) is None:  # only the client that starts a query is told that it has begun
            self._began(progress.get("name"), run)
        record, known = self._of(run), known_progress(progress)
        if record is None or known is None:
            return
        self._link.send(Progress(record.name, known))
        if known.duration_ms.trigger_execution is not None:
            self._link.send(Done(record.name, batch_end_s(known)))

    def _idled(self, run: str) -> None:
        record = self._of(run)
        if record is not None:
            self._link.send(Done(record.name))

    def _ended(self, run: str, error: str | None) -> None:
        record = self._of(run)
        if record is None:
            return
        state = State.STOPPED if error is None else State.FAILED
        with self._lock:
            self._records[record.name] = replace(record, state=state, error=error)
        self._link.send(Gone(record.name))
        self._note()

    def _of(self, run: str) -> QueryRecord | None:
        return next((record for record in self._all() if record.run == run), None)


class _Listener(StreamingQueryListener):
    """Passes on what Connect tells of the session's queries."""

    def __init__(self, fleet: ConnectFleet) -> None:
        self._fleet = fleet

    def onQueryStarted(self, event: Any) -> None:
        self._fleet._began(event.name, str(event.runId))

    def onQueryProgress(self, event: Any) -> None:
        self._fleet._progressed(str(event.progress.runId), json.loads(event.progress.json))

    def onQueryIdle(self, event: Any) -> None:
        self._fleet._idled(str(event.runId))

    def onQueryTerminated(self, event: Any) -> None:
        exception = event.exception
        self._fleet._ended(str(event.runId), None if exception is None else first_line(exception))
