"""Spark's query events, delivered to a JVM queue without a call into Python.

``PythonStreamingQueryListener`` is the interface behind PySpark's own listeners. It is implemented
here by a method handle that puts each event among the reports of the gates, so that Python reads
everything from one place, in order, when it wants to: the listener bus never waits for it.

One event does wait: ``onQueryStarted`` runs on the query's own thread before its first trigger.
That thread is held until :meth:`Start.let_go` (at most two seconds), which is the moment to put a
gate on it. It has inherited the local properties of the thread that called ``start()``, and so
carries the mark by which a start of ours is told from any other.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.clientserver import ClientServer
from py4j.java_collections import JavaList
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.gates.reports import Reports

_API = "org.apache.spark.sql.streaming"
_STARTED = f"{_API}.StreamingQueryListener$QueryStartedEvent"
_TERMINATED, _IDLE, _PROGRESS = (
    f"{_API}.StreamingQueryListener$Query{kind}Event" for kind in ("Terminated", "Idle", "Progress")
)
_CONTEXT = "org.apache.spark.SparkContext"
_SEMAPHORE = "java.util.concurrent.Semaphore"
_STRING = "java.lang.String"
_LIST = "java.util.List"
_QUEUE = "java.util.concurrent.LinkedBlockingQueue"
_MARK = "slackwater.start"  # a local property of Spark's
_NO_MARK = "-"
START_LIMIT_MS = 2000
STARTED = "start"  # reported when there is a start to take


class Start:
    """A query that has begun and waits to be let go."""

    def __init__(self, report: JavaList) -> None:
        self._permit: JavaObject = report[0]
        mark, _, event = str(report[1]).partition(" ")
        self.mark = None if mark == _NO_MARK else mark
        self.event: dict[str, Any] = json.loads(event)

    def let_go(self) -> None:
        """Let the query's thread go on."""
        self._permit.release()


class QueryEvents:
    """Registers the listener; of a start ``reports`` tells that there is one, of others all.

    Parameters
    ----------
    at_once
        Whether the progress of batches is awaited; else the gates tell of it first.
    """

    def __init__(
        self, spark: SparkSession, handles: Handles, reports: Reports, at_once: bool = True
    ) -> None:
        self._handles = handles
        self._starts = handles.java.util.concurrent.LinkedBlockingQueue()
        self._context = spark.sparkContext
        self._jcontext: JavaObject = spark.sparkContext._jsc.sc()
        self._streams: JavaObject = spark._jsparkSession.streams()
        interface = f"{_API}.PythonStreamingQueryListener"
        proxy = handles.implement(interface, self._deliver(reports, at_once))
        jvm: JavaObject = spark._jvm
        self._listener = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(
            proxy
        )
        self._streams.addListener(self._listener)

    @contextmanager
    def marked(self, mark: str) -> Iterator[None]:
        """Have a query that this thread starts meanwhile carry the mark.

        Where Python's threads do not have threads of their own in the JVM, it carries none.
        """
        if not isinstance(self._context._gateway, ClientServer):
            yield
            return
        self._context.setLocalProperty(_MARK, f"{mark} ")
        try:
            yield
        finally:
            self._context.setLocalProperty(_MARK, None)  # type: ignore[arg-type]

    def next_start(self) -> Start | None:
        """Return the next query that waits to be let go."""
        report = self._starts.poll()
        return None if report is None else Start(report)

    def query(self, query_id: str) -> JavaObject:
        """Return the query with this id, or ``None`` when it has already ended."""
        return self._streams.get(query_id)

    def close(self) -> None:
        self._streams.removeListener(self._listener)

    def _deliver(self, reports: Reports, at_once: bool) -> JavaObject:
        """Return ``(Object[] arguments) → null``: report the event, wait if it is a start."""
        handles = self._handles
        event = handles.first_argument(handles.object)
        nothing = handles.ignoring(handles.nothing(), handles.objects)
        deliver = handles.returning(nothing, handles.void)
        for kind in (_TERMINATED, _IDLE, _PROGRESS):
            line = handles.returning(self._json(kind, event), handles.object)
            report = handles.collect(reports.put_off(wake=at_once or kind != _PROGRESS), line)
            report = handles.returning(report, handles.void)
            deliver = handles.choose(self._is(kind, event), report, deliver)
        start = handles.returning(self._deliver_start(reports, event), handles.void)
        deliver = handles.choose(self._is(_STARTED, event), start, deliver)
        return handles.then(deliver, nothing)

    def _is(self, kind: str, event: JavaObject) -> JavaObject:
        """Return ``(Object[] arguments) → boolean``: whether the event is of this kind."""
        handles, owner = self._handles, "java.lang.Class"
        found = handles.type(kind)
        test = handles.method(owner, "isInstance", handles.bool, handles.object, of=found)
        return handles.collect(test, event)

    def _json(self, kind: str, event: JavaObject) -> JavaObject:
        """Return ``(Object[] arguments) → String``: an event of this kind as JSON."""
        handles = self._handles
        text = handles.type(_STRING)
        as_json = handles.virtual(kind, "json", text)
        return handles.collect(as_json.asType(handles.signature(text, handles.object)), event)

    def _deliver_start(self, reports: Reports, event: JavaObject) -> JavaObject:
        """Return ``(Object[] arguments) → boolean``: offer a permit with the event, wait for it.

        Each start has a permit of its own: one that comes too late is nobody else's.
        """
        handles = self._handles
        offer = handles.method(_QUEUE, "offer", handles.bool, handles.object, of=self._starts)
        tell = handles.insert(reports.offer(), 0, STARTED)
        pair = handles.static("java.util.Arrays", "asList", handles.type(_LIST), handles.objects)
        pair = handles.returning(pair.asCollector(handles.objects, 2), handles.object)
        offer = handles.collect(offer, pair)
        offer = handles.collect(offer, self._line(event), position=1)
        unit = handles.type("java.util.concurrent.TimeUnit")
        wait = handles.virtual(_SEMAPHORE, "tryAcquire", handles.bool, handles.long, unit)
        wait = handles.insert(wait, 2, handles.java.util.concurrent.TimeUnit.MILLISECONDS)
        limit = handles.java.util.concurrent.atomic.AtomicReference(START_LIMIT_MS)
        wait = handles.collect(wait, handles.number(limit), position=1)
        wait = wait.asType(handles.signature(handles.bool, handles.object))
        wait = handles.ignoring(wait, handles.objects, position=1)
        permit = handles.insert(handles.constructor(_SEMAPHORE, handles.int), 0, 0)
        permit = handles.returning(permit, handles.object)
        return handles.fold(handles.then(offer, tell, self._unmark(), wait), permit)

    def _line(self, event: JavaObject) -> JavaObject:
        """Return ``(Object[] arguments) → Object``: this thread's mark and the event as JSON."""
        handles = self._handles
        text = handles.type(_STRING)
        mark = handles.method(_CONTEXT, "getLocalProperty", text, text, of=self._jcontext)
        mark = handles.returning(handles.insert(mark, 0, _MARK), handles.object)
        shown = handles.static("java.util.Objects", "toString", text, handles.object, text)
        shown = handles.collect(handles.insert(shown, 1, f"{_NO_MARK} "), mark)
        line = handles.collect(handles.virtual(_STRING, "concat", text, text), shown)
        line = handles.collect(line, self._json(_STARTED, event))
        return handles.returning(line, handles.object)

    def _unmark(self) -> JavaObject:
        """Return ``() → void``: take the mark off this thread, so that its jobs do not carry it."""
        handles = self._handles
        text = handles.type(_STRING)
        put = handles.method(
            _CONTEXT, "setLocalProperty", handles.void, text, text, of=self._jcontext
        )
        return handles.insert(handles.insert(put, 0, _MARK), 0, None)
