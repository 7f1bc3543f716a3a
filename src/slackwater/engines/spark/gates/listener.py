"""Spark's query events, delivered to a JVM queue without a call into Python.

``PythonStreamingQueryListener`` is the interface behind PySpark's own listeners. It is implemented
here by a method handle that puts each event on the queue that the gates report to, so that Python
reads everything from one place, in order, when it wants to: the listener bus never waits for it.

One event does wait: ``onQueryStarted`` runs on the query's own thread before its first trigger.
That thread is held until :meth:`QueryEvents.started` lets it go on (at most two seconds), which is
the moment to put a gate on it.
"""

from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject

_API = "org.apache.spark.sql.streaming"
START_LIMIT_MS = 2000


class QueryEvents:
    """Registers the listener; ``reports`` is the JVM queue."""

    def __init__(self, spark: SparkSession, handles: Handles, reports: JavaObject) -> None:
        self._streams: JavaObject = spark._jsparkSession.streams()
        self._permits = handles.java.util.concurrent.Semaphore(0)
        interface = f"{_API}.PythonStreamingQueryListener"
        proxy = handles.implement(interface, self._deliver(handles, reports))
        jvm: JavaObject = spark._jvm
        self._listener = jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper(
            proxy
        )
        self._streams.addListener(self._listener)

    def started(self) -> None:
        """Let the thread of the query that has just started go on."""
        self._permits.release()

    def query(self, query_id: str) -> JavaObject:
        """The query with this id, or ``None`` when it has already ended."""
        return self._streams.get(query_id)

    def close(self) -> None:
        self._streams.removeListener(self._listener)
        self._permits.release(1000)

    def _deliver(self, handles: Handles, reports: JavaObject) -> JavaObject:
        """``(Object[] arguments) → null``: offer the event, and wait if it is a start."""
        arguments = handles.type("[Ljava.lang.Object;")
        event = handles.first_argument(handles.object)
        owner = "java.util.concurrent.LinkedBlockingQueue"
        offer = handles.method(owner, "offer", handles.bool, handles.object, of=reports)
        offer = handles.collect(offer, event)
        kind = handles.type(f"{_API}.StreamingQueryListener$QueryStartedEvent")
        is_start = handles.method(
            "java.lang.Class", "isInstance", handles.bool, handles.object, of=kind
        )
        is_start = handles.collect(is_start, event)
        unit = handles.type("java.util.concurrent.TimeUnit")
        permit = handles.method(
            "java.util.concurrent.Semaphore",
            "tryAcquire",
            handles.bool,
            handles.long,
            unit,
            of=self._permits,
        )
        permit = handles.insert(permit, 1, handles.java.util.concurrent.TimeUnit.MILLISECONDS)
        limit = handles.java.util.concurrent.atomic.AtomicReference(START_LIMIT_MS)
        permit = handles.ignoring(handles.collect(permit, handles.number(limit)), arguments)
        # A permit that came too late for an earlier start must not be taken for this one.
        drain = handles.method(
            "java.util.concurrent.Semaphore", "drainPermits", handles.int, of=self._permits
        )
        drain = handles.ignoring(drain, arguments)
        no_wait = handles.static("java.util.Objects", "nonNull", handles.bool, handles.object)
        no_wait = no_wait.asType(handles.signature(handles.bool, arguments))
        wait_if_start = handles.choose(is_start, permit, no_wait)
        nothing = handles.ignoring(handles.nothing(), arguments)
        return handles.then(drain, offer, wait_if_start, nothing)
