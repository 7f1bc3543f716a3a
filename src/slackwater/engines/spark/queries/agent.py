"""The driver's side of the gates: what the JVM reports goes to the controller, grants come back."""

import json
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from py4j.java_collections import JavaList
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.clock import Deadline, RealClock
from slackwater.core.model import QuerySpec
from slackwater.core.protocols import Clock
from slackwater.engines.spark.gates.clock import ClockGate, ClockGateUnavailable, execution_of
from slackwater.engines.spark.gates.execution import Checkpoint, ExecutionView, checkpoint_of
from slackwater.engines.spark.gates.listener import QueryEvents, Start
from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.gates.read_limits import ReadLimits, probe
from slackwater.engines.spark.gates.watermark import WatermarkRaise
from slackwater.engines.spark.progress import batch_end_s, read_progress
from slackwater.engines.spark.queries.held import GoneOn, Held, TooEarly
from slackwater.engines.spark.queries.input_watch import InputWatch
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.reporting import MEMORY_ALONE_S, MEMORY_PERIOD_S, Reporter
from slackwater.engines.spark.sources.row_limits import RowLimits
from slackwater.ipc.client import Link
from slackwater.ipc.messages import Arrive, Command, Done, Gone, Grant, Progress, spec_message

log = logging.getLogger("slackwater.fleet")

REPORTS_KEPT = 100_000  # the JVM queue's bound; reports beyond it are lost, gates open by max_wait
ASKERS = 4  # frontiers that take their time are asked for at once

ProgressSink = Callable[[str, dict[str, Any]], None]  # name of the query, its progress
TurnSink = Callable[[str], None]  # name of the table whose run may begin


class Agent:
    """Tells the controller of the queries in a registry, and the registry what Spark reports.

    Parameters
    ----------
    socket
        The controller's socket.
    gate
        Which gate the fleet has, for those who watch.
    on_command
        Called with what somebody told the controller and the fleet must do. Must return at once.
    follow_cores
        Tell how many cores there are: the controller's slots follow them.
    """

    def __init__(
        self,
        spark: SparkSession,
        socket: Path,
        registry: Registry,
        gate: str,
        on_command: Callable[[Command], None],
        clock: Clock = RealClock(),
        *,
        follow_cores: bool = False,
    ) -> None:
        self._clock = clock
        self._handles = Handles(spark)
        self._reports = self._handles.java.util.concurrent.LinkedBlockingQueue(REPORTS_KEPT)
        self._milliseconds = self._handles.java.util.concurrent.TimeUnit.MILLISECONDS
        self._registry = registry
        self._reporter = Reporter(spark, registry, gate, clock, follow_cores)
        unlimited = probe(spark) if gate == "clock" else None
        self._can_limit = unlimited is None  # rows of sources that are not ours
        if unlimited is not None:
            log.warning("rows are limited at our sources only: %s", unlimited)
        self._sinks: list[ProgressSink] = []
        self._on_turn: TurnSink = lambda name: None
        self.row_limits = RowLimits()  # where grants leave their row limits
        self._lock = threading.Lock()  # guards the four below
        self._holding = False  # whether the controller is there and wants queries held
        self._hold_s = 0.0  # the least time that the load asks gates to hold for
        self._settling = False  # arrivals are no longer told to the controller: nothing is granted
        self._held: dict[str, Held] = {}  # by run
        self._telling = threading.Lock()  # specs reach the controller in the order of changes
        self._closed = threading.Event()
        # Servers and functions of the user's must not hold up the grants of others.
        self._askers = ThreadPoolExecutor(ASKERS, thread_name_prefix="slackwater-frontier")
        self._query_events = QueryEvents(spark, self._handles, self._reports)
        self.link = Link(socket, self._on_grant, self._on_lease, on_command, self._on_hold)
        self._inputs = InputWatch(self.link.send, clock)
        registry.subscribe(self._on_change)
        self._pump = threading.Thread(target=self._run, name="slackwater-agent", daemon=True)
        self._pump.start()

    def on_progress(self, sink: ProgressSink) -> None:
        """Call ``sink`` for every progress event of our queries. It must return at once."""
        self._sinks.append(sink)

    def on_turn(self, sink: TurnSink) -> None:
        """Call ``sink`` when a table has a slot that it asked for. It must return at once."""
        self._on_turn = sink

    def ask_turn(self, record: QueryRecord) -> bool:
        """Ask for a slot for a run of a table; return whether there is somebody to give it."""
        with self._lock:
            if not self._holding:
                return False
        self.link.send(Arrive(record.name, record.version))
        return True

    @property
    def hold_s(self) -> float | None:
        """How long gates are to hold at least, as the load asks; None: nobody holds."""
        with self._lock:
            return self._hold_s if self._holding else None

    def settle(self, timeout_s: float) -> None:
        """Let batches that run come to their end and start no others, so that none is cut off."""
        self._settling = True
        Deadline(timeout_s).wait_for(lambda: not self._holding or self._all_wait(), every_s=0.02)

    def close(self) -> None:
        """Open all gates, put Spark's clocks back, end the threads."""
        self._on_lease(False)
        for run in list(self._held):
            self._take_off(run)
        self._inputs.close()
        self._closed.set()
        self._askers.shutdown(wait=False)
        self._query_events.close()
        self._pump.join(timeout=5)
        self.link.close()

    def _all_wait(self) -> bool:
        runs = {record.run for record in self._registry.all() if record.present}
        with self._lock:
            return all(held.waiting for run, held in self._held.items() if run in runs)

    # -- queries --------------------------------------------------------------------------------

    def marked(self, mark: str) -> AbstractContextManager[None]:
        """Have the query that this thread starts meanwhile carry a mark of the registry."""
        return self._query_events.marked(mark)

    def hold(self, record: QueryRecord, query: StreamingQuery) -> None:
        """Put a clock gate on a query that runs already."""
        assert record.run is not None
        gate = ClockGate(self._handles, record.name, record.run, self._reports)
        gate.install(query)
        self._admit(record, gate, execution_of(query._jsq))

    def raise_watermarks(self, run: str, raises: WatermarkRaise | None) -> None:
        """Raise the watermark of a run from now on, as far as this says."""
        with self._lock:
            held = self._held.get(run)
            if held is not None:
                held.raises = raises

    def unheld(self, record: QueryRecord, why: Exception) -> None:
        """Note that a query cannot have a clock gate and runs without."""
        log.warning("%s is not held: %s", record.name, why)
        starting = (State.STARTING,)
        self._registry.update(
            record.name, run=record.run, when=starting, gate="none", state=State.ACTIVE
        )

    def checkpoint(self, query: StreamingQuery) -> Checkpoint | None:
        """Return where a query's progress is kept, as far as Spark shows it."""
        return checkpoint_of(self._handles, query)

    def _admit(
        self, record: QueryRecord, gate: ClockGate, execution: JavaObject, starting: bool = False
    ) -> None:
        view = ExecutionView(self._handles, execution)
        limits = ReadLimits(self._handles, execution, self._can_limit, record.in_pieces)
        held = Held(gate, view, limits, record.spec.max_wait_s, starting=starting)
        with self._lock:
            self._held[gate.run] = held
            if self._holding:
                held.close(self._hold_s)
        self._inputs.watch(gate.run, record.name, held, execution)

    def _take_off(self, run: str) -> None:
        """Take the gate off a run that has ended, or goes on as plain Spark."""
        with self._lock:
            held = self._held.pop(run, None)
        if held is not None:
            self._inputs.forget(run)
            with held.turn:
                held.lift_limits()
                held.gate.uninstall()
                held.leave_to_spark()

    # -- from the registry ----------------------------------------------------------------------

    def _on_change(self, old: QueryRecord | None, new: QueryRecord) -> None:
        was_present = old is not None and old.present
        if new.state in (State.RELEASED, State.FAILED) and new.run is not None:
            self._take_off(new.run)
        if new.present and (old is None or not was_present or old.spec != new.spec):
            self._bound_wait(new)
            self._tell_spec(new.spec)
        elif was_present and not new.present:
            self.row_limits.forget(new.name, goes_on=new.state is State.RELEASED)
            with self._telling:
                self.link.send(Gone(new.name))

    def _bound_wait(self, record: QueryRecord) -> None:
        with self._lock:
            held = self._held.get(record.run or "")
            if held is not None:
                held.max_wait_s = record.spec.max_wait_s
                if self._holding:
                    held.close(self._hold_s)

    def _tell_spec(self, spec: QuerySpec) -> None:
        with self._telling:
            self.link.send(spec_message(spec))

    # -- from the controller --------------------------------------------------------------------

    def _on_lease(self, holds: bool) -> None:
        with self._lock:
            self._holding = holds
            every = list(self._held.values())
            for held in every:
                if holds:
                    held.close(self._hold_s)
                else:
                    held.waiting = False
        for held in every if not holds else ():
            with held.turn:  # no watermark is raised under a batch that this lets begin
                held.lift_limits()
                held.open()
        if not holds:
            self.row_limits.clear()
            return
        with self._telling:
            for record in self._registry.all():
                if record.present:
                    self.link.send(spec_message(record.spec))
        self._reporter.forget()
        self._askers.submit(lambda: self.link.send(*self._reporter.history(every)))

    def _on_hold(self, hold_s: float) -> None:
        """Hold for so long at least, from the next trigger of each query on."""
        with self._lock:
            self._hold_s = hold_s
            for held in self._held.values() if self._holding else ():
                held.close(hold_s)

    def _on_grant(self, grant: Grant) -> None:
        record = self._registry.get(grant.query)
        if record is not None and record.refreshed:
            self._on_turn(record.name)
            return
        with self._lock:
            held = self._held.get(record.run or "") if record is not None else None
            if held is None or not held.waiting or held.seq != grant.seq:
                return  # stale: that trigger has gone on without it
            held.waiting = False
        assert record is not None
        raises = held.raises
        if raises is not None and raises.takes_time:
            self._askers.submit(self._let_go_on, record, held, grant)
        else:
            self._let_go_on(record, held, grant)

    def _let_go_on(self, record: QueryRecord, held: Held, grant: Grant) -> None:
        """Let a query go on, with its watermark raised as far as it can be."""
        why_not = None
        try:
            with held.turn:
                # Limits come first: a batch with a raised watermark must read all there is.
                held.reads = grant.rows != 0
                held.limit_rows(grant.rows, self._clock)
                self.row_limits.set_rows(grant.query, grant.rows)
                try:
                    held.raise_watermark(grant, self._clock)
                except TooEarly:
                    raise
                except GoneOn:
                    log.debug("%s may have gone on before its grant", grant.query)
                    if held.seq != grant.seq:  # it has, and is back
                        return
                    # It may only be about to wait: its next arrival throws away what comes late.
                except Exception as error:  # then Spark moves it, as ever
                    held.leave_to_spark()
                    why_not = str(error)
                held.granted_s = self._clock.monotonic()
                held.gate.grant()
        except TooEarly:
            self._arrive_again(grant.query, held)
        if why_not is not None:  # not within the turn: who follows changes may wait for it
            log.warning("the watermark of %s is left to Spark: %s", record.name, why_not)
            self._registry.update(
                record.name, run=record.run, one_batch=False, why_two_batches=why_not
            )

    def _arrive_again(self, name: str, held: Held) -> None:
        """Have a query wait on: it came when it came, and was not let go on."""
        with self._lock:
            held.seq += 1
            held.waiting = self._holding
            seq = held.seq
        if not self._settling:
            self.link.send(Arrive(name, seq, again=True))

    # -- from the JVM ---------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            report = self._reports.poll(500, self._milliseconds)
            try:
                self.link.send(*self._reporter.memory(MEMORY_ALONE_S), *self._reporter.notes())
                self.link.send(*self._reporter.sinks(self._granted()))
                if isinstance(report, JavaList):
                    self._on_started(Start(report))
                elif isinstance(report, str):
                    what, _, run = report.partition(" ")
                    self._on_gate(what, run)
                elif report is not None:
                    self._on_event(report)
            except Exception:
                log.exception("a report of Spark could not be handled; going on")
        while (report := self._reports.poll()) is not None:
            if isinstance(report, JavaList):
                Start(report).let_go()

    def _granted(self) -> dict[str, float]:
        """Return when the batches that run now were let in, by run."""
        with self._lock:
            return {run: h.granted_s for run, h in self._held.items() if h.granted_s is not None}

    def _present(self, run: str) -> QueryRecord | None:
        """Return the query whose present run this is, if it is not being stopped."""
        record = self._registry.of_run(run)
        return record if record is not None and record.run == run and record.present else None

    def _on_gate(self, what: str, run: str) -> None:
        record = self._present(run)
        if record is None:
            return
        if what == "done":
            self.link.send(Done(record.name))
            return
        with self._lock:
            held = self._held.get(run)
            if held is None:
                return
            held.seq += 1
            held.waiting = self._holding
            held.arrive(self._clock.monotonic())
            first, held.starting = held.starting, False
        if first:
            held.gate.finish_install()
        self._reached_trigger(record)
        if not self._settling:
            arrival = held.report(record.name)
            self.link.send(*self._reporter.memory(MEMORY_PERIOD_S), arrival)
            self._inputs.arrive(run, held.found_nothing)

    def _reached_trigger(self, record: QueryRecord) -> None:
        if record.state is State.STARTING:
            starting = (State.STARTING,)
            self._registry.update(record.name, run=record.run, when=starting, state=State.ACTIVE)

    def _on_event(self, jevent: JavaObject) -> None:
        event = json.loads(jevent.json())
        if "progress" in event:
            self._on_progress(event["progress"])
        elif "timestamp" in event:
            self._on_idle(event["runId"])
        elif "exception" in event or "errorClassOnException" in event:
            self._take_off(event["runId"])
            self._registry.end(event["runId"], event.get("exception"))

    def _on_progress(self, progress: dict[str, Any]) -> None:
        record = self._registry.of_run(progress["runId"])
        if record is None:
            return  # not one of ours
        if record.present and record.run == progress["runId"]:
            # A held query's progress goes with its next arrival, together with its watermark.
            if record.run not in self._held:
                self.link.send(Progress(record.name, read_progress(progress)))
                # A table keeps its slot until its run has ended, and is gone.
                if "triggerExecution" in progress["durationMs"] and not record.refreshed:
                    self.link.send(Done(record.name, batch_end_s(progress)))
            self._reached_trigger(record)
            if record.attempts:
                self._registry.update(record.name, run=record.run, attempts=0)
        for sink in self._sinks:
            sink(record.name, progress)

    def _on_idle(self, run: str) -> None:
        """Say that a trigger found nothing to do: a source-gated query has no other way to."""
        record = self._present(run)
        if record is not None and run not in self._held and not record.refreshed:
            self.link.send(Done(record.name))

    def _on_started(self, start: Start) -> None:
        """Put the gate on a query whose thread waits for us here, then let it go."""
        try:
            event = start.event
            record = self._registry.begin(start.mark, event["name"], event["id"], event["runId"])
            if record is not None and record.gate == "clock":
                self._install_at_start(record, event["id"])
        finally:
            start.let_go()

    def _install_at_start(self, record: QueryRecord, query_id: str) -> None:
        query = self._query_events.query(query_id)
        if query is None:
            return
        assert record.run is not None
        gate = ClockGate(self._handles, record.name, record.run, self._reports)
        execution = execution_of(query)
        try:
            gate.install_at_start(execution)
        except ClockGateUnavailable as error:
            self.unheld(record, error)
            return
        self._admit(record, gate, execution, starting=True)
