"""A look into a query's execution while it stands at its gate.

Between two triggers nothing moves there, so what is read is exact: the last batch's progress (the
listener bus brings it some milliseconds later) and the watermark that the next batch will run with
(progress tells it one batch late, and of several inputs only the first).
"""

import json
import logging
import re
from typing import Any, NamedTuple

import msgspec
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.common.exceptions import first_line
from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.session.versions import stream_conf

log = logging.getLogger("slackwater.fleet")

_STREAM, _EXECUTION = "StreamExecution", "MicroBatchExecution"
_TRACKER, _PROPAGATOR = "WatermarkTracker", "WatermarkPropagator"
_PROGRESS = "org.apache.spark.sql.streaming.StreamingQueryProgress"
_PARTS, _POLICY, _PROPAGATES = "operatorToWatermarkMap", "policy", "watermarkPropagator"
_TEMPORARY = "deleteCheckpointOnStop"
_ALL_BATCHES = 2**62
_THREADS = "java.lang.management.ThreadMXBean"
_EVICTS_AHEAD = "spark.sql.streaming.statefulOperator.allowMultiple"


class NotRaisable(SlackwaterError):
    """The watermark of this query must be left to Spark; the message says why."""


class Shows:
    """Makes of an execution what tells of it: one line, made in the JVM as it comes to its gate.

    Each call into the JVM costs as much Python as all that is done with the answer.
    """

    def __init__(self, handles: Handles) -> None:
        self._handles = handles
        tracker = handles.type(_TRACKER)
        self._progress = handles.virtual(_EXECUTION, "lastProgress", handles.type(_PROGRESS))
        self._json = self._in_short()
        self._tracker = handles.virtual(_EXECUTION, "watermarkTracker", tracker)
        self._parts = handles.getter(_TRACKER, _PARTS)
        self._current = handles.virtual(_TRACKER, "currentWatermark", handles.long)

    def __call__(self, execution: JavaObject) -> JavaObject:
        """Return ``() → Object``: the text that :meth:`ExecutionView.hear` understands."""
        handles = self._handles
        tracker = self._tracker.bindTo(execution)
        line = handles.text(
            handles.collect(self._current, tracker),
            handles.collect(self._parts, tracker),
            handles.collect(self._json, self._progress.bindTo(execution)),
        )
        return handles.on_error(line, "")  # its first trigger makes the tracker

    def _in_short(self) -> JavaObject:
        """Return ``(StreamingQueryProgress) → String``: in one line; it prints itself in many."""
        handles = self._handles
        kind, text = handles.type(_PROGRESS), handles.type("java.lang.String")
        is_there = handles.static("java.util.Objects", "nonNull", handles.bool, handles.object)
        is_there = is_there.asType(handles.signature(handles.bool, kind))
        nothing = handles.ignoring(handles.returning(handles.nothing(), text), kind)
        return handles.choose(is_there, handles.virtual(_PROGRESS, "json", text), nothing)


def shows(handles: Handles) -> Shows | None:
    """Return what makes executions show themselves; ``None`` where this Spark hides something."""
    try:
        return Shows(handles)
    except Exception as error:
        reason = first_line(str(error))
        log.warning("this Spark does not show the next watermark (%s); going without", reason)
        return None


class ExecutionView:
    """What one execution shows. A Spark that hides something is asked only once."""

    def __init__(self, handles: Handles, execution: JavaObject) -> None:
        self._handles = handles
        self._execution = execution
        self._heard = ""  # what it showed last
        self._read: str | None = None  # when the trigger began whose progress was last read
        self.watermark_ms: int | None = None  # of the next batch, as it was last looked at
        self.marks_ms: dict[str, int | None] = {}  # what it is made of, by Spark's operator
        self._tracker: JavaObject = None  # of its watermarks
        self._propagator: JavaObject = None  # works out the watermarks of chained operators
        self._largest: bool | None = None  # of several watermarks; None: not looked at yet
        self._checked = False  # whether late rows are filtered by the watermark before
        self._thread_cpu_ns: JavaObject = None  # tells what its thread has used
        self._thread_hidden = False  # nobody can see that

    def hear(self, shown: str) -> dict[str, Any] | None:
        """Take what it shows at its gate; return the last batch's progress, once.

        ``None`` when none has ended since.

        >>> view = ExecutionView(None, None)
        >>> view.hear('[500, Map(6c-1 -> Some(700), 7a-2 -> None), {"timestamp": "t"}]')
        {'timestamp': 't'}
        >>> view.watermark_ms, view.parts_ms
        (500, (700, 0))
        """
        if not shown or shown == self._heard:
            return None
        self._heard = shown
        marks, found, rest = shown.partition(", {")
        whole, _, parts = marks[1:].partition(", ")
        self.marks_ms, self.watermark_ms = _by_operator(parts), int(whole)
        progress = read_json("{" + rest[:-1]) if found else None
        # Not by its batch: a trigger that finds nothing has the number of the one that comes.
        if progress is None or progress["timestamp"] == self._read:
            return None
        self._read = progress["timestamp"]
        return progress

    @property
    def parts_ms(self) -> tuple[int, ...]:
        """Each watermark in the plan; an input without events has none yet: it is at the epoch."""
        return tuple(self.marks_ms[operator] or 0 for operator in sorted(self.marks_ms))

    def recent(self, most: int) -> list[dict[str, Any]]:
        """Return the progress of the last triggers that Spark remembers, oldest first."""
        try:
            found = list(self._execution.recentProgress())[-most:]
            return [read_json(each.json()) for each in found]
        except Exception as error:
            log.info("no progress of a query is remembered: %s", error)
            return []

    def thread_cpu_s(self) -> float | None:
        """Return the CPU time that the query's own thread has used; ``None`` if nobody can see."""
        if self._thread_hidden:
            return None
        try:
            if self._thread_cpu_ns is None:
                handles, thread = self._handles, self._execution.queryExecutionThread()
                bean = handles.java.lang.management.ManagementFactory.getThreadMXBean()
                used = handles.method(
                    _THREADS, "getThreadCpuTime", handles.long, handles.long, of=bean
                )
                self._thread_cpu_ns = handles.insert(used, 0, thread.getId())
            used_ns = int(self._handles.call(self._thread_cpu_ns))
        except Exception as error:
            log.info("the CPU time of a query's thread is not known: %s", first_line(str(error)))
            self._thread_hidden = True
            return None
        return used_ns / 1e9 if used_ns >= 0 else None  # a thread that has ended has none

    def raise_watermark(self, to_ms: int) -> None:
        """Have the next batch run with this watermark; it is never lowered.

        A trigger that found nothing leaves the watermark of the batch that it looked for in a
        cache, and Spark fails if that batch comes with another: so the cache is cleared.
        """
        if self.watermark_ms is None or to_ms <= self.watermark_ms:
            return
        self._refuse_one_watermark()
        if self._tracker is None:
            self._tracker = self._execution.watermarkTracker()
            field = self._handles.type(_EXECUTION).getDeclaredField(_PROPAGATES)
            field.setAccessible(True)
            self._propagator = field.get(self._execution)
        self._propagator.purge(_ALL_BATCHES)
        self._tracker.setWatermark(to_ms)
        self.watermark_ms = to_ms

    def takes_largest(self) -> bool:
        """Tell whether Spark takes the largest of several watermarks, as the checkpoint has it."""
        if self._largest is None:
            policy = self._handles.type(_TRACKER).getDeclaredField(_POLICY)
            policy.setAccessible(True)
            chosen = policy.get(self._execution.watermarkTracker())
            self._largest = str(chosen.toString()) == "MaxWatermark"
        return self._largest

    def _refuse_one_watermark(self) -> None:
        """Refuse a query that filters late rows by the watermark that it lets state go by.

        So do checkpoints of old versions, whatever the session says; Spark restores it by its
        first trigger.
        """
        if self._checked:
            return
        conf = stream_conf(self._execution, self._handles.type(_STREAM))
        if str(conf.get(_EVICTS_AHEAD, "true")) != "true":
            raise NotRaisable(f"{_EVICTS_AHEAD} is off: rows within their delay would be lost")
        self._checked = True


def read_json(text: str) -> dict[str, Any]:
    """Return an event of Spark's; half a character in it is no reason to lose it.

    >>> read_json('{"name": "\\ud83d"}')["name"] == chr(0xd83d)
    True
    """
    try:
        found: dict[str, Any] = msgspec.json.decode(text)
    except (msgspec.MsgspecError, ValueError):
        found = json.loads(text)
    return found


def probe_raise(spark: SparkSession) -> str | None:
    """Return why this session's watermarks cannot be raised; ``None`` when they can."""
    handles = Handles(spark)
    fields = ((_EXECUTION, _PROPAGATES), (_TRACKER, _PARTS), (_TRACKER, _POLICY))
    methods: tuple[tuple[str, str, JavaObject, tuple[JavaObject, ...]], ...] = (
        (_EXECUTION, "watermarkTracker", _TRACKER, ()),
        (_TRACKER, "currentWatermark", handles.long, ()),
        (_TRACKER, "setWatermark", handles.void, (handles.long,)),
        (_PROPAGATOR, "purge", handles.void, (handles.long,)),
    )
    owner = name = ""
    try:
        for owner, name in fields:
            handles.type(owner).getDeclaredField(name)
        for owner, name, returns, takes in methods:
            kind = handles.type(returns) if isinstance(returns, str) else returns
            handles.virtual(owner, name, kind, *takes)
    except Exception:
        return f"Spark {spark.version} has no {owner}.{name}, which raises watermarks"
    return None


class Checkpoint(NamedTuple):
    """Where a query's progress is kept."""

    location: str
    temporary: bool  # made up by Spark, and deleted when the query is stopped
    recovers: bool  # whether its sink lets another run go on from there


def setting_of(handles: Handles, query: StreamingQuery, key: str) -> str | None:
    """Return a setting that a query runs with; it keeps what the session had when it started."""
    conf = stream_conf(execution_of(query._jsq), handles.type(_STREAM))
    found = conf.get(key, "")
    return str(found) or None


def checkpoint_of(handles: Handles, query: StreamingQuery) -> Checkpoint | None:
    """Return the checkpoint of a query that runs or has run; ``None`` if Spark does not show it."""
    try:
        execution = execution_of(query._jsq)
        made_up = handles.type(_STREAM).getDeclaredField(_TEMPORARY)
        made_up.setAccessible(True)
        return Checkpoint(
            str(execution.resolvedCheckpointRoot()),
            bool(made_up.get(execution)),
            execution.sink().getClass().getSimpleName() != "MemorySink",
        )
    except Exception as error:
        log.info("the checkpoint of %s is not known: %s", query.name, error)
        return None


def _by_operator(text: str) -> dict[str, int | None]:
    """Return a Scala map of watermarks, as it prints itself.

    >>> _by_operator("HashMap(6c-1 -> Some(700), 7a-2 -> None)")
    {'6c-1': 700, '7a-2': None}
    >>> _by_operator("Map(0 -> 700)")  # Spark 3.5 counts them
    {'0': 700}
    """
    pairs = re.findall(r"([\w-]+) -> (?:Some\()?(?:(-?\d+)|None)", text)
    return {operator: int(value) if value else None for operator, value in pairs}
