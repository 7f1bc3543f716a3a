"""A fleet over Spark Connect: source gates, by public API alone.

The client has no JVM and the server no session of ours, so three processes share the work. On the
server's host ``slackwater controller NAME`` decides, and each query's gate, a Python process that
Spark starts there, asks it. The client states what a query is and passes on the progress that
Connect's listener brings; gates hold and are granted without it.
"""

import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, TypeVar

from pyspark.sql import DataFrame, SparkSession

from slackwater.common.exceptions import first_line
from slackwater.common.limited import within
from slackwater.common.listing import unknown_query
from slackwater.core.clock import Deadline
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.gates import source as source_gate
from slackwater.engines.spark.plans.explained import discover_explained
from slackwater.engines.spark.queries.connect_listener import ConnectListener, remove_listener
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.specs import Duration, query_spec, seconds, stated_wait_s
from slackwater.engines.spark.queries.status import FleetStatus, note, query_status
from slackwater.engines.spark.session.versions import is_connect, refuse_missing_python_sources
from slackwater.ipc.client import Link, ask
from slackwater.ipc.messages import Gone, Notes, spec_message
from slackwater.ipc.questions import (
    AskDecisions,
    AskStatus,
    AskWatch,
    Control,
    Controlled,
    QueryEntry,
    Question,
    Status,
    Watched,
)
from slackwater.ipc.unix_socket import socket_path

log = logging.getLogger("slackwater.fleet")

A = TypeVar("A")

ANSWER_S = 5.0  # how long the controller has to be there
ACTIVE_S = 10.0  # how long the server has to say what runs
STOPS_S = 60.0  # and how long to stop queries: batches may have to end
ENDS_S = 5.0  # how long the ends of queries that were stopped are listened for
REMOVAL_S = 5.0  # and how long the server has to let go of the listener
LOOK_S = 0.1
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
        self._registry = Registry()
        self._registry.subscribe(self._on_change)
        self._telling = threading.Lock()  # specs reach the controller in the order of changes
        self._link = Link(self._reach, lambda grant: None, self._on_lease)
        self._link.start()
        self._link.wait_held(ANSWER_S)  # one that is switched off answers all the same
        try:
            self._policy, self._slots, _, _ = self._look()
        except SlackwaterError as error:
            self._link.close()
            raise SlackwaterError(
                f"{error}; on the server's host, as its user: slackwater controller {name}"
            ) from None
        log.warning(LACKS)
        self._listener = ConnectListener(self._registry, self._link)
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
        self._make_room(name)
        self._registry.add(QueryRecord(spec, "source", State.DECLARED, stated_wait_s=stated_s))
        return source_gate.gate(
            self.spark, df, query=name, socket=self.socket, limited=(), max_wait_s=spec.max_wait_s
        )

    def status(self) -> FleetStatus:
        """Return every query with its state and figures; prints as a table, also in notebooks."""
        known: dict[str, QueryEntry] = {}
        try:
            self._policy, self._slots, known, is_open = self._look()
            controller = "open" if is_open else "running"
        except SlackwaterError:
            controller = "off: queries run as plain Spark"
        rows = tuple(query_status(each, known.get(each.name)) for each in self._registry.all())
        gate = "source (Spark Connect)"
        return FleetStatus(self.name, self._policy, gate, controller, self._slots, rows)

    def explain(self, last: int = 20, query: str | None = None) -> list[dict[str, Any]]:
        """Return the last decisions, newest first: which query, why, how long it waited."""
        if query is not None and self._registry.get(query) is None:
            raise unknown_query(query, [record.name for record in self._registry.all()])
        return self._ask(AskDecisions(last=last, query=query), list[dict[str, Any]])

    def off(self) -> None:
        """Open all gates of the controller."""
        self._ask(Control(action="off"), Controlled)

    def on(self) -> None:
        """Hold queries again."""
        self._ask(Control(action="on"), Controlled)

    def stop(self) -> None:
        """Stop the queries that were gated here. The controller goes on.

        What cannot be stopped, because the server is gone, say, is logged.
        """
        try:
            self._await_ends(self._stop_queries())
            remove_listener(self.spark.streams, self._listener, REMOVAL_S)
        finally:
            with self._telling:
                gone = (Gone(record.name) for record in self._registry.all())
                self._link.send(*gone, Notes("Spark Connect", "source"))
            self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # -- queries --------------------------------------------------------------------------------

    def _make_room(self, name: str) -> None:
        """Note that a query has ended whose end was not heard yet: it may be gated anew."""
        known = self._registry.get(name)
        if known is None or known.run is None or known.ended:
            return
        if known.run not in {str(query.runId) for query in self.spark.streams.active}:
            self._registry.end(known.run, None)

    def _stop_queries(self) -> set[str]:
        """Stop what was gated here and runs; return the runs that were stopped."""
        names = {record.run: record.name for record in self._registry.all() if not record.ended}
        stopped: set[str] = set()
        try:
            # PySpark asks a server that is gone again and again, for ten minutes.
            runs = names.keys() - {None}
            active = within(ACTIVE_S, lambda: self.spark.streams.active) if runs else []
        except Exception as error:  # of gRPC, whose types need not be here
            log.warning("no query was stopped: %s", first_line(str(error)))
            return stopped
        limit = Deadline(STOPS_S)
        for query in active:
            run = str(query.runId)
            if run in names:
                try:
                    within(max(LOOK_S, limit.left_s), query.stop)
                    stopped.add(run)
                except Exception as error:
                    log.warning("%s did not stop cleanly: %s", names[run], first_line(str(error)))
        return stopped

    def _await_ends(self, runs: set[str]) -> None:
        """Wait until it was heard that these runs have ended, but not for ever."""
        limit = Deadline(ENDS_S)
        while not limit.passed and any(r.run in runs and r.present for r in self._registry.all()):
            self._registry.wait_change(min(LOOK_S, limit.left_s))

    # -- to the controller ----------------------------------------------------------------------

    def _ask(self, question: Question, kind: type[A]) -> A:
        return ask(self._reach, question, kind)

    def _look(self) -> tuple[str, int, dict[str, QueryEntry], bool]:
        """Return the policy, the slots, what is known of each query, whether gates are open."""
        found, watched = self._ask(AskStatus(), Status), self._ask(AskWatch(), Watched)
        known = {entry.spec.name: entry for entry in found.queries}
        return watched.policy, found.slots, known, found.open

    def _on_lease(self, holds: bool) -> None:
        if not holds:
            return
        with self._telling:  # it may be another controller
            present = [record.spec for record in self._registry.all() if record.present]
            self._link.send(*map(spec_message, present), self._notes())

    def _on_change(self, old: QueryRecord | None, new: QueryRecord) -> None:
        was_present = old is not None and old.present
        with self._telling:
            if new.present and not was_present:
                self._link.send(spec_message(new.spec))
            elif was_present and not new.present:
                self._link.send(Gone(new.name))
            self._link.send(self._notes())

    def _notes(self) -> Notes:
        every = {record.name: note(record) for record in self._registry.all()}
        return Notes("Spark Connect", "source", every)
