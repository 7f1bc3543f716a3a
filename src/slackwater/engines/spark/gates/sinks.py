"""Which batches only wait for their sinks: no job of theirs runs, and none is being planned."""

import logging
import re
from collections.abc import Callable, Mapping

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject

log = logging.getLogger("slackwater.fleet")

_GROUP = re.compile(r"Some\(([^)]*)\)")  # as a Scala option prints itself

LONG_S = 1.0  # after its grant: planning and commits are over, unless the machine is full
FULL = 0.8  # of all cores: then a batch without a job may well be planning
PLANNED_S = 10.0  # but not for so long


class SinkWatch:
    """Looks at the jobs of batches that have run for long; Spark groups jobs by a query's run.

    Parameters
    ----------
    active
        Returns the runs of which a job runs now.
    cores
        That batches can run on.
    machine_s
        Returns the CPU time that was used on them so far, whoever used it.
    """

    def __init__(
        self, active: Callable[[], set[str]], cores: int, machine_s: Callable[[], float]
    ) -> None:
        self._active = active
        self._machine_s = machine_s
        self._cores = cores
        self._quiet: dict[str, float] = {}  # since when a run has had no job
        self._in_sink: set[str] = set()
        self._looked: tuple[float, float] | None = None  # when, and the CPU time until then

    def look(self, granted: Mapping[str, float], now_s: float) -> set[str]:
        """Return the runs whose batches wait for their sinks.

        Parameters
        ----------
        granted
            When the batch of each run was let in.
        """
        long = {run for run, at_s in granted.items() if now_s - at_s >= LONG_S}
        if not long:  # and at the first look at one nothing is decided yet
            self._quiet, self._in_sink, self._looked = {}, set(), None
            return self._in_sink
        used_s = self._machine_s()
        before, self._looked = self._looked, (now_s, used_s)
        full = before is None or used_s - before[1] > FULL * self._cores * (now_s - before[0])
        # At two looks, at least: between two jobs of a batch there is a moment without one.
        seen = self._quiet
        self._quiet = {run: seen.get(run, now_s) for run in long - self._active()}
        patience_s = PLANNED_S if full else 0.0
        self._in_sink = {
            run
            for run, since_s in self._quiet.items()
            if run in self._in_sink or (run in seen and now_s - since_s >= patience_s)
        }
        return self._in_sink


def active_runs(spark: SparkSession) -> Callable[[], set[str]]:
    """Return what asks Spark for the runs of which a job runs."""
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
