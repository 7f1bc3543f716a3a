"""Which batches only wait for their sinks: no job of theirs runs, and none is being planned."""

import logging
import re
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject

log = logging.getLogger("slackwater.fleet")

_GROUP = re.compile(r"Some\(([^)]*)\)|None")  # as a Scala option prints itself

LONG_S = 1.0  # after its grant: most batches are over by then
RESTS = 0.02  # of a core: a thread that plans gets more, also of a machine that is full
PLANNED_S = 10.0  # nobody plans for so long: where it cannot be told otherwise, that must do


class SinkWatch:
    """Looks at batches that have run for long: have they a job, and does their own thread work?

    Spark groups jobs by a query's run. How full the machine is tells nothing: a thread that
    sleeps uses no CPU time on any. Jobs of others may be those of a ``foreachBatch`` that starts
    them in threads of its own: beside such nobody seems to rest that has not for long.

    Parameters
    ----------
    active
        Returns the groups of all jobs that run now.
    thread_cpu_s
        Returns the CPU time that the thread of a run has used so far; None: it cannot be seen.
    """

    def __init__(
        self, active: Callable[[], set[str]], thread_cpu_s: Callable[[str], float | None]
    ) -> None:
        self._active = active
        self._thread_cpu_s = thread_cpu_s
        # Of each run without a job: since when, and when was it last seen with how much CPU time.
        self._quiet: dict[str, tuple[float, float, float | None]] = {}
        self._in_sink: set[str] = set()

    def look(self, granted: Mapping[str, float], now_s: float) -> set[str]:
        """Return the runs whose batches wait for their sinks.

        Parameters
        ----------
        granted
            When the batch of each run was let in.
        """
        long = {run for run, at_s in granted.items() if now_s - at_s >= LONG_S}
        if not long:
            self._quiet, self._in_sink = {}, set()
            return self._in_sink
        # At two looks, at least: between two jobs of a batch there is a moment without one.
        before, self._quiet, waits = self._quiet, {}, set()
        active = self._active()
        others = not active <= granted.keys()
        for run in long - active:
            used_s = self._thread_cpu_s(run)
            since_s, seen_s, seen_used_s = before.get(run, (now_s, now_s, None))
            self._quiet[run] = (since_s, now_s, used_s)
            rests = now_s - since_s >= PLANNED_S
            if used_s is not None and seen_used_s is not None:
                works = used_s - seen_used_s >= RESTS * (now_s - seen_s)
                rests = not works and (rests or not others)
            # One that wrote what its sink has answered is about to end: it waits for no slot.
            if rests or run in self._in_sink:
                waits.add(run)
        self._in_sink = waits
        return self._in_sink


def active_runs(spark: SparkSession) -> Callable[[], set[str]]:
    """Return what asks Spark for the groups of all jobs that run; one without has an empty one."""
    context: JavaObject = spark._jsc.sc()
    handles = Handles(spark)
    groups: Callable[[], str] | None = None

    def ask() -> set[str]:
        nonlocal groups
        groups = groups or _groups(handles, context.statusStore())
        return set(_GROUP.findall(groups()))

    return ask


def _groups(handles: Handles, store: JavaObject) -> Callable[[], str]:
    """Return what tells the groups of all jobs that run; each call into the JVM costs."""
    running = handles.java.util.ArrayList()
    running.add(handles.spark.JobExecutionStatus.RUNNING)
    group_of = _group_of(handles)
    try:
        text = _in_one_call(handles, store, running, group_of)
    except Py4JError:  # Spark 3.5: Scala's collections are of other types there
        return lambda: str(store.jobsList(running).iterator().map(group_of).mkString(" "))
    return lambda: str(handles.call(text))


def _in_one_call(
    handles: Handles, store: JavaObject, running: JavaObject, group_of: JavaObject
) -> JavaObject:
    """Return ``() → String``: the groups of all jobs that run."""
    sequence, function = handles.type("scala.collection.immutable.Seq"), "scala.Function1"
    owner, kind = "org.apache.spark.status.AppStatusStore", handles.type("java.util.List")
    jobs = handles.insert(handles.method(owner, "jobsList", sequence, kind, of=store), 0, running)
    owner = "scala.collection.IterableOps"
    each = handles.virtual(owner, "map", handles.object, handles.type(function))
    each = handles.insert(each, 1, group_of)
    return handles.text(handles.collect(each, handles.returning(jobs, handles.type(owner))))


def _group_of(handles: Handles) -> JavaObject:
    """Return a function in the JVM, from a job to its group: so that all are asked at once."""
    kind = "org.apache.spark.status.api.v1.JobData"
    group = handles.virtual(kind, "jobGroup", handles.type("scala.Option"))
    group = handles.collect(group, handles.first_argument(handles.type(kind)))
    return handles.implement("scala.Function1", handles.returning(group, handles.object))
