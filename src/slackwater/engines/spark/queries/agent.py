"""The driver's side of the gates: what the JVM reports goes to the controller, grants come back."""

import logging
import re
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.core.clock import Deadline, RealClock
from slackwater.core.model import QuerySpec
from slackwater.core.protocols import Clock
from slackwater.engines.spark.gates.clock import ClockGate, ClockGateUnavailable, execution_of
from slackwater.engines.spark.gates.execution import (
    Checkpoint,
    ExecutionView,
    checkpoint_of,
    read_json,
    shows,
)
from slackwater.engines.spark.gates.listener import STARTED, QueryEvents, Start
from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.gates.read_limits import ReadLimits, probe
from slackwater.engines.spark.gates.reports import Reports
from slackwater.engines.spark.gates.watermark import WatermarkRaise
from slackwater.engines.spark.progress import batch_end_s, read_progress
from slackwater.engines.spark.queries.granting import Granter
from slackwater.engines.spark.queries.held import Held
from slackwater.engines.spark.queries.held_runs import HeldRuns
from slackwater.engines.spark.queries.input_watch import InputWatch
from slackwater.engines.spark.queries.news import News
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.reporting import MEMORY_ALONE_S, MEMORY_PERIOD_S, Reporter
from slackwater.engines.spark.sources.row_limits import RowLimits
from slackwater.ipc.client import Link
from slackwater.ipc.messages import Arrive, Command, Done, Gone, Grant, Progress, spec_message

log = logging.getLogger("slackwater.fleet")

UNREAD_S = 0.5  # until reports are read again that could not be
ASKERS = 4  # frontiers that take their time are asked for at once

# Which run's progress an event tells, and when its trigger began: not to read what is known.
_PROGRESS = re.compile(r'\{"progress":\{.*?"runId":"([^"]+)".*?"timestamp":"([^"]+)"')

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
        self.handles = Handles(spark)  # small programs inside the JVM
        self._reports = Reports(self.handles)
        self._registry = registry
        self._held = HeldRuns(clock)
        self._reporter = Reporter(
            spark, registry, gate, clock, follow_cores, self._held.thread_cpu_s
        )
        unlimited = probe(spark) if gate == "clock" else None
        self._can_limit = unlimited is None  # rows of sources that are not ours
        if unlimited is not None:
            log.warning("rows are limited at our sources only: %s", unlimited)
        self._shows = shows(self.handles)
        self._sinks: list[ProgressSink] = []
        self._on_turn: TurnSink = lambda name: None
        self.row_limits = RowLimits()  # where grants leave their row limits
        self._news = News()
        self._settling = False  # arrivals are no longer told to the controller: nothing is granted
        self._telling = threading.Lock()  # specs reach the controller in the order of changes
        self._closed = threading.Event()
        # Servers and functions of the user's must not hold up the grants of others.
        self._askers = ThreadPoolExecutor(ASKERS, thread_name_prefix="slackwater-frontier")
        self._granter = Granter(
            self._held, registry, self.row_limits, self._askers, self._arrive_again, clock
        )
        # A clock gate tells of the last batch before Spark's listener does.
        at_once = gate != "clock" or self._shows is None
        self._query_events = QueryEvents(spark, self.handles, self._reports, at_once)
        self.link = Link(socket, self._on_grant, self._on_lease, on_command, self._held.hold_for)
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
        if self._held.hold_s is None:
            return False
        self.link.send(Arrive(record.name, record.version))
        return True

    @property
    def hold_s(self) -> float | None:
        """How long gates are to hold at least, as the load asks; None: nobody holds."""
        return self._held.hold_s

    def settle(self, timeout_s: float) -> None:
        """Let batches that run come to their end and start no others, so that none is cut off."""
        self._settling = True
        Deadline(timeout_s).wait_for(self._all_wait, every_s=0.02)

    def close(self) -> None:
        """Open all gates, put Spark's clocks back, end the threads."""
        self._on_lease(False)
        self._closed.set()  # first: what was told at a gate is not told again without one
        for run in self._held.runs:
            self._take_off(run)
        self._inputs.close()
        self._askers.shutdown(wait=False)
        self._query_events.close()
        self._pump.join(timeout=5)
        self.link.close()

    def _all_wait(self) -> bool:
        return self._held.all_wait({r.run for r in self._registry.all() if r.present})

    # -- queries --------------------------------------------------------------------------------

    def marked(self, mark: str) -> AbstractContextManager[None]:
        """Have the query that this thread starts meanwhile carry a mark of the registry."""
        return self._query_events.marked(mark)

    def hold(self, record: QueryRecord, query: StreamingQuery) -> None:
        """Put a clock gate on a query that runs already."""
        assert record.run is not None
        gate = self._gate(record.name, record.run)
        gate.install(query)
        self._admit(record, gate, execution_of(query._jsq))

    def _gate(self, name: str, run: str) -> ClockGate:
        return ClockGate(self.handles, name, run, self._reports, self._shows)

    def raise_watermarks(self, run: str, raises: WatermarkRaise | None) -> None:
        """Raise the watermark of a run from now on, as far as this says."""
        self._held.raise_watermarks(run, raises)

    def rows_left(self, runs: Iterable[str]) -> dict[str, int]:
        """Ask the sources of held runs how many rows wait; who does not tell is left out."""
        return self._inputs.rows_left(runs)

    def unheld(self, record: QueryRecord, why: Exception) -> None:
        """Note that a query cannot have a clock gate and runs without."""
        log.warning("%s is not held: %s", record.name, why)
        starting = (State.STARTING,)
        self._registry.update(
            record.name, run=record.run, when=starting, gate="none", state=State.ACTIVE
        )

    def checkpoint(self, query: StreamingQuery) -> Checkpoint | None:
        """Return where a query's progress is kept, as far as Spark shows it."""
        return checkpoint_of(self.handles, query)

    def _admit(
        self, record: QueryRecord, gate: ClockGate, execution: JavaObject, starting: bool = False
    ) -> None:
        view = ExecutionView(self.handles, execution)
        limits = ReadLimits(self.handles, execution, self._can_limit, record.in_pieces)
        held = Held(gate, view, limits, record.spec.max_wait_s, starting=starting)
        self._held.add(gate.run, held)
        self._inputs.watch(gate.run, record.name, held, execution)

    def _take_off(self, run: str) -> None:
        self._inputs.forget(run)
        self._held.take_off(run)

    # -- from the registry ----------------------------------------------------------------------

    def _on_change(self, old: QueryRecord | None, new: QueryRecord) -> None:
        was_present = old is not None and old.present
        if new.state in (State.RELEASED, State.FAILED) and new.run is not None:
            self._take_off(new.run)
        if new.present and (old is None or not was_present or old.spec != new.spec):
            self._held.bound_wait(new.run, new.spec.max_wait_s)
            self._tell_spec(new.spec)
        elif was_present and not new.present:
            self.row_limits.forget(new.name, goes_on=new.state is State.RELEASED)
            with self._telling:
                self.link.send(Gone(new.name))

    def _tell_spec(self, spec: QuerySpec) -> None:
        with self._telling:
            self.link.send(spec_message(spec))

    # -- from the controller --------------------------------------------------------------------

    def _on_lease(self, holds: bool) -> None:
        if not holds:
            self._held.open_all()
            self.row_limits.clear()
            return
        every = self._held.hold_all()
        with self._telling:
            for record in self._registry.all():
                if record.present:
                    self.link.send(spec_message(record.spec))
        self._reporter.forget()
        self._askers.submit(lambda: self.link.send(*self._reporter.history(every)))

    def _on_grant(self, grant: Grant) -> None:
        record = self._registry.get(grant.query)
        if record is None:
            return
        if record.refreshed:
            self._on_turn(record.name)
            return
        self._granter.grant(record, grant)

    def _arrive_again(self, name: str, held: Held) -> None:
        """Have a query wait on: it came when it came, and was not let go on."""
        seq = self._held.wait_on(held)
        if not self._settling:
            self.link.send(Arrive(name, seq, again=True))

    # -- from the JVM ---------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            for line in self._next_lines():
                if self._closed.is_set():
                    break
                try:
                    self._on_line(line)
                except Exception:
                    log.exception("a report of Spark could not be handled; going on")
            self._tell_of_the_driver()
        while (start := self._query_events.next_start()) is not None:
            start.let_go()

    def _next_lines(self) -> list[str]:
        try:
            return self._reports.next()
        except Exception:  # the JVM may be short of memory, or ending
            log.exception("Spark's reports could not be read; going on")
            self._closed.wait(UNREAD_S)
            return []

    def _tell_of_the_driver(self) -> None:
        if not self._reporter.due:
            return
        try:
            self.link.send(*self._reporter.memory(MEMORY_ALONE_S), *self._reporter.notes())
            self.link.send(*self._reporter.sinks(self._held.granted_s))
        except Exception:  # must not cost the report that is in hand
            log.exception("the controller could not be told of the driver; going on")

    def _present(self, run: str) -> QueryRecord | None:
        """Return the query whose present run this is, if it is not being stopped."""
        record = self._registry.of_run(run)
        return record if record is not None and record.run == run and record.present else None

    def _on_line(self, line: str) -> None:
        if line.startswith("{"):
            if not self._is_known(line):
                self._on_event(read_json(line))
        elif line == STARTED:
            while (start := self._query_events.next_start()) is not None:
                self._on_started(start)
        else:
            what, run, shown = line.split(" ", 2)
            self._on_gate(what, run, shown)

    def _is_known(self, event: str) -> bool:
        """Tell whether an event is the progress that a query has shown at its gate already."""
        found = _PROGRESS.match(event)
        return found is not None and self._news.knows(found[1], found[2])

    def _on_gate(self, what: str, run: str, shown: str) -> None:
        record = self._present(run)
        if record is None:
            return
        if what == "done":
            self.link.send(Done(record.name))
            return
        held = self._held.arrive(run)
        if held is None:
            return
        if held.starting:
            held.starting = False
            held.gate.finish_install()
        self._reached_trigger(record)
        if not self._settling:
            arrival = held.report(record.name, shown)
            self.link.send(*self._reporter.memory(MEMORY_PERIOD_S), arrival)
            self._inputs.arrive(run, held.found_nothing)
            if held.progress is not None:
                self._on_progress(held.progress)

    def _reached_trigger(self, record: QueryRecord) -> None:
        if record.state is State.STARTING:
            starting = (State.STARTING,)
            self._registry.update(record.name, run=record.run, when=starting, state=State.ACTIVE)

    def _on_event(self, event: dict[str, Any]) -> None:
        if "progress" in event:
            self._on_progress(event["progress"])
        elif "timestamp" in event:
            self._on_idle(event["runId"])
        elif "exception" in event or "errorClassOnException" in event:
            self._take_off(event["runId"])
            self._news.forget(event["runId"])
            self._registry.end(event["runId"], event.get("exception"))

    def _on_progress(self, progress: dict[str, Any]) -> None:
        record = self._registry.of_run(progress["runId"])
        if record is None:
            return  # not one of ours
        if record.present and record.run == progress["runId"]:
            # A held query's progress goes with its next arrival, together with its watermark.
            if record.run not in self._held or self._shows is None:
                self.link.send(Progress(record.name, read_progress(progress)))
                # A table keeps its slot until its run has ended, and is gone.
                if "triggerExecution" in progress["durationMs"] and not record.refreshed:
                    self.link.send(Done(record.name, batch_end_s(progress)))
            self._reached_trigger(record)
            if record.attempts:
                self._registry.update(record.name, run=record.run, attempts=0)
        if self._news.is_new(progress["runId"], progress["timestamp"]):
            for sink in self._sinks:
                try:
                    sink(record.name, progress)
                except Exception:  # must not cost the others behind it
                    log.exception("the progress of %s could not be used; going on", record.name)

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
        gate = self._gate(record.name, record.run)
        execution = execution_of(query)
        try:
            gate.install_at_start(execution)
        except ClockGateUnavailable as error:
            self.unheld(record, error)
            return
        self._admit(record, gate, execution, starting=True)
