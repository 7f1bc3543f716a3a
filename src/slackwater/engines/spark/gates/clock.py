"""The clock gate: holds a query by the clock of its trigger; the query itself is not changed.

Spark's trigger loop asks a ``Clock`` for the time before each trigger. The gate puts a clock of its
own there (made in the JVM, see :mod:`~slackwater.engines.spark.gates.method_handles`) which
reports the arrival on a queue and then waits for a permit, at most ``max_wait``. With the wait set
to zero the gate is open and the query runs as plain Spark.
"""

import threading
from collections.abc import Callable
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.common.exceptions import first_line
from slackwater.core.clock import Deadline
from slackwater.core.errors import EngineError
from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.gates.reports import Reports

_CLOCK = "org.apache.spark.util.Clock"
_EXECUTOR = "ProcessingTimeExecutor"
_EXECUTION = "StreamExecution"
_SEMAPHORE = "java.util.concurrent.Semaphore"
_STRING = "java.lang.String"
INITIALISE_LIMIT_S = 60.0


class ClockGateUnavailable(EngineError):
    """This query or this Spark cannot be held by its clock; the message says why."""


class ClockGate:
    """The gate of one query.

    Parameters
    ----------
    name
        Of the query, for messages.
    run
        Arrivals are reported as ``"arrive RUN SHOWN"`` and ends of batches as ``"done RUN "``:
        runs of one query are told apart.
    shows
        Returns a handle, ``() → String``, of what an execution shows as it arrives.
    """

    def __init__(
        self,
        handles: Handles,
        name: str,
        run: str,
        reports: Reports,
        shows: Callable[[JavaObject], JavaObject] | None = None,
    ) -> None:
        concurrent = handles.java.util.concurrent
        self.name = name
        self.run = run
        self._lock = threading.Lock()  # it may be taken off while it is being put on
        self._off = False  # taken off for good
        self._handles = handles
        self._reports = reports
        self._shows = shows
        self._permits = concurrent.Semaphore(0)
        self._hold_ms = concurrent.atomic.AtomicReference(0)  # open until told otherwise
        self._holds_ms = 0  # the same, as far as is known here
        self._setting = threading.Lock()  # guards both
        self._execution: JavaObject = None
        self._original: JavaObject = None  # the clock that was there before

    # -- control --------------------------------------------------------------------------------

    @property
    def occupied(self) -> bool:
        """Whether the query's thread waits here at this moment."""
        return bool(self._permits.hasQueuedThreads())

    def grant(self) -> None:
        """Let the query that waits run one trigger."""
        self._permits.release()

    def close(self, max_wait_s: float) -> None:
        """Hold from now on, no trigger for longer than ``max_wait_s``."""
        hold_ms = max(1, round(max_wait_s * 1000))
        with self._setting:
            if hold_ms != self._holds_ms:  # of hundreds of gates, most are told what they know
                self._hold_ms.set(hold_ms)
                self._holds_ms = hold_ms

    def open(self) -> None:
        """Hold nothing. The order matters: whoever waits now gets a permit, all others no wait."""
        with self._setting:
            self._holds_ms = 0
            self._hold_ms.set(0)
        self._permits.release()

    # -- installation ---------------------------------------------------------------------------

    def install(self, query: StreamingQuery) -> None:
        """Take over a query that runs; it is held from its next trigger on."""
        self._execution = execution_of(query._jsq)
        check_trigger(self._execution)
        limit = Deadline(INITIALISE_LIMIT_S)  # its sources are being made
        limit.wait_for(lambda: self._has_begun() or not query.isActive, every_s=0.01)
        if not self._has_begun():
            raise ClockGateUnavailable(f"query {self.name!r} has not begun; is it active?")
        self._install_loop_clock()

    def install_at_start(self, execution: JavaObject) -> None:
        """Take over a query whose thread is only just starting, before its first trigger.

        Its trigger executor does not exist yet, but will be made with the execution's own clock:
        so that clock is replaced until the first call, which is the loop's.
        """
        check_trigger(execution)
        self._execution = execution
        self._original = execution.triggerClock()
        clock = self._first_clock(self._original)
        self._set_field(execution, _EXECUTION, "triggerClock", clock)
        if self._has_begun():  # its thread did not wait for us
            self.finish_install()

    def finish_install(self) -> None:
        """Hold every trigger: the first arrival of a query installed at its start has come."""
        with self._lock:
            if not self._off:
                self._restore_execution()
                self._install_loop_clock()

    def uninstall(self) -> None:
        """Put Spark's own clock back, wherever the query is on its way."""
        self.open()
        with self._lock:
            self._off = True
            self._restore_execution()
            if self._has_begun():
                own = self._execution.triggerClock()
                self._set_field(self._execution.triggerExecutor(), _EXECUTOR, "clock", own)

    def _has_begun(self) -> bool:
        return self._execution.triggerExecutor() is not None

    def _restore_execution(self) -> None:
        """Put the execution's own clock back, if it was replaced at the start."""
        if self._original is not None:
            self._set_field(self._execution, _EXECUTION, "triggerClock", self._original)

    def _install_loop_clock(self) -> None:
        executor = self._execution.triggerExecutor()
        kind = executor.getClass().getSimpleName()
        if kind != _EXECUTOR:
            raise ClockGateUnavailable(
                f"query {self.name!r} runs under {kind}; the clock gate holds only processing-time "
                "triggers (the default)"
            )
        interval_ms = executor.processingTimeTrigger().intervalMs()
        # Not the executor's clock: of a query held from its start, that is the gate's own.
        original = self._execution.triggerClock()
        clock = self._asap_clock() if interval_ms == 0 else self._interval_clock(original)
        self._set_field(executor, _EXECUTOR, "clock", clock)

    def _set_field(self, target: JavaObject, owner: str, name: str, value: JavaObject) -> None:
        declared = self._handles.type(owner).getDeclaredField(name)
        declared.setAccessible(True)
        declared.set(target, value)

    # -- the clocks -----------------------------------------------------------------------------

    def _now(self) -> JavaObject:
        """Return ``() → Object``: the time in ms."""
        handles = self._handles
        now = handles.static("java.lang.System", "currentTimeMillis", handles.long)
        return handles.returning(now, handles.object)

    def _report(self, what: str, shown: JavaObject = None) -> JavaObject:
        """Return ``() → boolean``: report a line; where that cannot be nobody listens."""
        handles, offer = self._handles, self._reports.offer()
        if shown is None:
            return handles.insert(offer, 0, f"{what} {self.run} ")
        text = handles.type(_STRING)
        line = handles.method(_STRING, "concat", text, text, of=f"{what} {self.run} ")
        line = handles.collect(line, handles.returning(shown, text))
        return handles.collect(offer, handles.returning(line, handles.object))

    def _hold(self) -> JavaObject:
        """Return ``() → Object``: report the arrival, wait for a permit, tell the time.

        Permits left over from before the arrival are thrown away first: a grant that came after
        the query had gone on by itself must not let its next trigger pass.
        """
        handles = self._handles
        drain = handles.method(_SEMAPHORE, "drainPermits", handles.int, of=self._permits)
        unit = handles.type("java.util.concurrent.TimeUnit")
        acquire = handles.method(
            _SEMAPHORE, "tryAcquire", handles.bool, handles.long, unit, of=self._permits
        )
        acquire = handles.insert(acquire, 1, handles.java.util.concurrent.TimeUnit.MILLISECONDS)
        # How long to wait is read before the arrival is reported: who handles the report may find
        # the gate open and not grant, so the gate must not be closed in between.
        shown = None if self._shows is None else self._shows(self._execution)
        report = handles.ignoring(self._report("arrive", shown), handles.long)
        wait = handles.collect(handles.then(report, acquire), handles.number(self._hold_ms))
        whole = handles.then(drain, wait, self._now())
        # Interrupted means stopped: the loop sees that for itself as soon as the clock returns.
        return handles.on_interrupt(whole, self._now())

    def _first_clock(self, original: JavaObject) -> JavaObject:
        """Make a clock that holds its first call, and then tells and awaits time as ``original``.

        The trigger executor may keep this clock, if the gate is taken off while it is being made.
        """
        handles = self._handles
        owner = "java.util.concurrent.atomic.AtomicBoolean"
        once = handles.java.util.concurrent.atomic.AtomicBoolean(True)
        first = handles.method(owner, "getAndSet", handles.bool, handles.bool, of=once)
        first = handles.ignoring(handles.insert(first, 0, False), handles.objects)
        hold = handles.ignoring(self._hold(), handles.objects)
        wait = handles.on_interrupt(self._wait(original), self._now())
        return handles.implement(_CLOCK, handles.choose(first, hold, self._if_target(wait)))

    def _asap_clock(self) -> JavaObject:
        """Make the clock for triggers as soon as possible: asked once, before each trigger."""
        handles = self._handles
        return handles.implement(_CLOCK, handles.ignoring(self._hold(), handles.objects))

    def _interval_clock(self, original: JavaObject) -> JavaObject:
        """Make the clock for triggers at an interval: await the interval's end, then the permit."""
        handles = self._handles
        done = handles.ignoring(self._report("done"), handles.objects)
        hold = handles.ignoring(self._hold(), handles.objects)
        held = handles.then(done, self._wait(original), hold)
        return handles.implement(_CLOCK, self._if_target(handles.on_interrupt(held, self._now())))

    def _wait(self, clock: JavaObject) -> JavaObject:
        """Return ``(Object[] {target}) → Object``: wait until a moment on a clock."""
        handles = self._handles
        wait = handles.method(_CLOCK, "waitTillTime", handles.long, handles.long, of=clock)
        wait = handles.collect(wait, handles.first_argument(handles.long))
        return handles.returning(wait, handles.object)

    def _if_target(self, waiting: JavaObject) -> JavaObject:
        """Choose ``waiting`` for calls that name a moment, the time for those that ask for it."""
        handles = self._handles
        has_target = handles.static("java.util.Objects", "nonNull", handles.bool, handles.object)
        has_target = has_target.asType(handles.signature(handles.bool, handles.objects))
        return handles.choose(has_target, waiting, handles.ignoring(self._now(), handles.objects))


def execution_of(jquery: JavaObject) -> JavaObject:
    """Return the running execution behind a query handle."""
    try:
        return jquery.streamingQuery()
    except Exception:  # already the execution itself
        return jquery


def trigger_interval_s(query: StreamingQuery) -> float | None:
    """Return the interval of a query's trigger; None where it has none, or does not show it."""
    try:
        trigger = execution_of(query._jsq).trigger()
        if trigger.getClass().getSimpleName() != "ProcessingTimeTrigger":
            return None
        return float(trigger.intervalMs()) / 1000 or None
    except Exception:
        return None


def check_trigger(execution: JavaObject) -> None:
    kind = execution.trigger().getClass().getSimpleName()
    if kind != "ProcessingTimeTrigger":
        raise ClockGateUnavailable(
            f"the query's trigger is {kind}; the clock gate holds only processing-time triggers"
        )


def probe(spark: SparkSession) -> str | None:
    """Return why this session cannot have clock gates; ``None`` when it can."""
    if not hasattr(spark, "_jsparkSession"):
        return "Spark Connect has no access to the driver's JVM"
    version: Any = spark.version
    try:
        handles = Handles(spark)
        executor = handles.type("TriggerExecutor").getName()
        for owner, field, kind in (
            (_EXECUTOR, "clock", _CLOCK),
            (_EXECUTION, "triggerClock", _CLOCK),
            ("MicroBatchExecution", "triggerExecutor", executor),
        ):
            found = handles.type(owner).getDeclaredField(field).getType().getName()
            if found != kind:
                return f"Spark {version}: {owner}.{field} is a {found}, not a {kind}"
    except Exception as error:
        reason = first_line(str(error))
        return f"Spark {version} lacks a private field that the clock gate needs ({reason})"
    return None
