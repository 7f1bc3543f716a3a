"""The driver's side of the gates: what the JVM reports goes to the controller, grants come back."""

import json
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.model import QuerySpec
from slackwater.engines.spark.gates.clock import ClockGate, ClockGateUnavailable, execution_of
from slackwater.engines.spark.gates.execution import Peek
from slackwater.engines.spark.gates.heap import Heap
from slackwater.engines.spark.gates.listener import QueryEvents
from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.progress import batch_end_s, known_progress, read_progress
from slackwater.engines.spark.sources.row_limits import RowLimits
from slackwater.ipc.client import Link
from slackwater.ipc.messages import (
    Arrive,
    Command,
    Done,
    Gone,
    Grant,
    MemoryUse,
    Notes,
    Progress,
    spec_message,
)

log = logging.getLogger("slackwater.fleet")

MEMORY_PERIOD_S = 1.0  # along with an arrival, which costs the controller nothing more
MEMORY_ALONE_S = 2.0  # and by itself when there are none
NOTES_PERIOD_S = 1.0  # between two looks whether something is to be noted
NOTES_AGAIN_S = 5.0  # for a controller that was started anew
REPORTS_KEPT = 100_000  # the JVM queue's bound; reports beyond it are lost, gates open by max_wait


@dataclass
class Held:
    """A query behind a clock gate."""

    gate: ClockGate
    peek: Peek
    seq: int = 0  # arrivals so far
    waiting: bool = False
    starting: bool = False  # installed at start, first trigger not yet reached


@dataclass
class AgentEvents:
    """Whom the agent tells what; called on its own threads, must return at once."""

    on_ready: Callable[[str], None]  # a query's first arrival
    on_progress: Callable[[str, dict[str, Any]], None]
    on_terminated: Callable[[str, str | None], None]  # run id, exception
    # Asked when a query starts, with its name and id: its name in the fleet, and what to hold.
    on_started: Callable[[str | None, str], tuple[str | None, QuerySpec | None]]
    on_refused: Callable[[str, str], None]  # a clock gate could not be put on: name and why
    on_command: Callable[[Command], None]  # the controller was told something that concerns us
    notes: Callable[[], Notes]  # what only the fleet knows, for those who watch
    named: dict[str, str] = field(default_factory=dict)  # run id → name in the fleet


class Agent:
    """One a driver process.

    Parameters
    ----------
    socket
        The controller's socket.
    """

    def __init__(self, spark: SparkSession, socket: Path, events: AgentEvents) -> None:
        self._handles = Handles(spark)
        self._reports = self._handles.java.util.concurrent.LinkedBlockingQueue(REPORTS_KEPT)
        self._milliseconds = self._handles.java.util.concurrent.TimeUnit.MILLISECONDS
        self.row_limits = RowLimits()  # where grants leave their row limits
        self._events = events
        self._lock = threading.Lock()  # guards the three below
        self._holding = False  # whether the controller is there and wants queries held
        self._settling = False  # arrivals are no longer told to the controller: nothing is granted
        self._held: dict[str, Held] = {}
        self._specs: dict[str, QuerySpec] = {}
        self._closed = threading.Event()
        self._heap = Heap(spark)
        self._memory_told_s = 0.0
        self._noted: Notes | None = None
        self._noted_s = self._compared_s = 0.0
        self._query_events = QueryEvents(spark, self._handles, self._reports)
        self.link = Link(socket, self._on_grant, self._on_lease, events.on_command)
        self._pump = threading.Thread(target=self._run, name="slackwater-agent", daemon=True)
        self._pump.start()

    def settle(self, timeout_s: float) -> None:
        """Let batches that run come to their end and start no others, so that none is cut off."""
        self._settling = True
        until_s = time.monotonic() + timeout_s
        while self._holding and time.monotonic() < until_s:
            if all(held.waiting for held in list(self._held.values())):
                return
            time.sleep(0.02)

    def close(self) -> None:
        """Open all gates, put Spark's clocks back, end the threads."""
        self._on_lease(False)
        for name in list(self._held):
            self.remove(name)
        self._closed.set()
        self._query_events.close()
        self._pump.join(timeout=5)
        self.link.close()

    # -- queries --------------------------------------------------------------------------------

    def add(self, spec: QuerySpec) -> None:
        """Make a query known to the controller (gated elsewhere, or not at all)."""
        with self._lock:
            self._specs[spec.name] = spec
            held = self._held.get(spec.name)
            if held is not None and self._holding:
                held.gate.close(spec.max_wait_s)  # it may be told anew, with its windows
        self.link.send(spec_message(spec))

    def hold(self, spec: QuerySpec, query: StreamingQuery) -> None:
        """Put a clock gate on a query that runs already."""
        gate = ClockGate(self._handles, spec.name, self._reports)
        gate.install(query)
        self._admit(spec, Held(gate, Peek(self._handles, execution_of(query._jsq))))

    def remove(self, name: str, goes_on: bool = False) -> None:
        """Take the gate off a query that has ended, or goes on as plain Spark."""
        with self._lock:
            held = self._held.pop(name, None)
            self._specs.pop(name, None)
        if held is not None:
            held.gate.uninstall()
        self.row_limits.forget(name, goes_on)
        self.link.send(Gone(name))

    def _admit(self, spec: QuerySpec, held: Held) -> None:
        with self._lock:
            self._held[spec.name] = held
            self._specs[spec.name] = spec
            if self._holding:
                held.gate.close(spec.max_wait_s)
        self.link.send(spec_message(spec))

    # -- from the controller --------------------------------------------------------------------

    def _on_lease(self, holds: bool) -> None:
        with self._lock:
            self._holding = holds
            for name, held in self._held.items():
                if holds:
                    held.gate.close(self._specs[name].max_wait_s)
                else:
                    held.waiting = False
                    _open(name, held.gate)
            specs = list(self._specs.values())
        for spec in specs if holds else ():
            self.link.send(spec_message(spec))
        if not holds:
            self.row_limits.clear()

    def _on_grant(self, grant: Grant) -> None:
        with self._lock:
            held = self._held.get(grant.query)
            if held is None or not held.waiting or held.seq != grant.seq:
                return  # stale: that trigger has gone on without it
            held.waiting = False
        self.row_limits.set_rows(grant.query, grant.rows)
        held.gate.grant()

    # -- from the JVM ---------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            report = self._reports.poll(500, self._milliseconds)
            try:
                self.link.send(*self._memory(MEMORY_ALONE_S), *self._notes())
                if report is None:
                    continue
                if isinstance(report, str):
                    what, _, name = report.partition(" ")
                    self._on_gate(what, name)
                else:
                    self._on_event(report)
            except Exception:
                log.exception("a report of Spark could not be handled; going on")

    def _memory(self, period_s: float) -> list[MemoryUse]:
        """The state of the heap, if it was last told so long ago."""
        now_s = time.monotonic()
        if now_s < self._memory_told_s + period_s:
            return []
        self._memory_told_s = now_s
        try:
            return [self._heap.message()]
        except Exception as error:  # must not cost the report that is in hand
            log.info("the heap cannot be read: %s", error)
            return []

    def _notes(self) -> list[Notes]:
        """What the fleet knows, where it has changed; now and then all the same."""
        now_s = time.monotonic()
        if now_s < self._compared_s + NOTES_PERIOD_S:
            return []
        self._compared_s = now_s
        found = self._events.notes()
        if found == self._noted and now_s < self._noted_s + NOTES_AGAIN_S:
            return []
        self._noted, self._noted_s = found, now_s
        return [found]

    def _on_gate(self, what: str, name: str) -> None:
        if what == "done":
            self.link.send(Done(name))
            return
        with self._lock:
            held = self._held.get(name)
            if held is None:
                return
            held.seq += 1
            held.waiting = self._holding
            first, held.starting = held.starting, False
        if first:
            held.gate.finish_install()
        if held.seq == 1:
            self._events.on_ready(name)
        if not self._settling:
            self._tell_arrival(name, held)

    def _tell_arrival(self, name: str, held: Held) -> None:
        """All at once: a decision between two messages would mix old and new."""
        progress = held.peek.progress()
        whole_ms, inputs_ms = held.peek.watermarks_ms()
        self.link.send(
            *self._memory(MEMORY_PERIOD_S),
            Arrive(
                name,
                held.seq,
                progress=known_progress(progress),
                watermark_ms=whole_ms,
                input_watermarks_ms=tuple(inputs_ms),
            ),
        )

    def _on_event(self, jevent: JavaObject) -> None:
        event = json.loads(jevent.json())
        if "progress" in event:
            self._on_progress(event["progress"])
        elif "name" not in event and "timestamp" in event:
            self._on_idle(event["runId"])
        elif "exception" in event or "errorClassOnException" in event:
            self._events.on_terminated(event["runId"], event.get("exception"))
        elif "name" in event:
            self._on_started(event)

    def _on_progress(self, progress: dict[str, Any]) -> None:
        name = self._events.named.get(progress["runId"])
        if name is None:
            return  # not one of ours
        # A held query's progress goes with its next arrival, together with its watermark.
        held = name in self._held
        if not held:
            self.link.send(Progress(name, read_progress(progress)))
        if not held and "triggerExecution" in progress["durationMs"]:
            self.link.send(Done(name, batch_end_s(progress)))
        self._events.on_progress(name, progress)

    def _on_idle(self, run_id: str) -> None:
        """A trigger found nothing to do: a source-gated query has no other way to say so."""
        name = self._events.named.get(run_id)
        if name is not None and name not in self._held:
            self.link.send(Done(name))

    def _on_started(self, event: dict[str, Any]) -> None:
        """The query's thread waits for us here: put the gate on, then let it go."""
        try:
            name, spec = self._events.on_started(event["name"], event["id"])
            if name is not None:
                self._events.named[event["runId"]] = name
            if spec is not None:
                self._install_at_start(spec, event["id"])
        finally:
            self._query_events.started()

    def _install_at_start(self, spec: QuerySpec, query_id: str) -> None:
        query = self._query_events.query(query_id)
        if query is None:
            return
        gate = ClockGate(self._handles, spec.name, self._reports)
        execution = execution_of(query)
        try:
            gate.install_at_start(execution)
        except ClockGateUnavailable as error:
            self._events.on_refused(spec.name, str(error))
            self.add(spec)
            return
        self._admit(spec, Held(gate, Peek(self._handles, execution), starting=True))


def _open(name: str, gate: ClockGate) -> None:
    """One gate that cannot be opened (its query is ending) must not keep the others shut."""
    try:
        gate.open()
    except Exception:
        log.exception("the gate of %s could not be opened", name)
