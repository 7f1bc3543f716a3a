"""Which batches only wait for their sinks: no job of theirs runs, and none is being planned."""

import logging
import re
from collections.abc import Callable, Mapping

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
        used_s = self._machine_s()
        before, self._looked = self._looked, (now_s, used_s)
        if not long:
            self._quiet, self._in_sink = {}, set()
            return self._in_sink
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
    jvm: JavaObject = spark._jvm
    running = jvm.java.util.ArrayList()
    running.add(jvm.org.apache.spark.JobExecutionStatus.RUNNING)
    group_of: JavaObject = None

    def ask() -> set[str]:
        nonlocal group_of
        group_of = group_of or _group_of(Handles(spark))
        groups = context.statusStore().jobsList(running).iterator().map(group_of).mkString(" ")
        return set(_GROUP.findall(groups))

    return ask


def _group_of(handles: Handles) -> JavaObject:
    """Return a function in the JVM, from a job to its group: so that all are asked at once."""
    kind = "org.apache.spark.status.api.v1.JobData"
    group = handles.virtual(kind, "jobGroup", handles.type("scala.Option"))
    group = handles.collect(group, handles.first_argument(handles.type(kind)))
    return handles.implement("scala.Function1", handles.returning(group, handles.object))
