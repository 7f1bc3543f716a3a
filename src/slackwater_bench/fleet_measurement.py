"""What every trial of a fleet does: start its queries, wait, measure, drain, stop."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Mapping
from typing import Generic

from pyspark.sql import SparkSession

from slackwater.core.clock import Deadline, RealClock
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.fleet import Fleet
from slackwater_bench.emissions import Progress
from slackwater_bench.trial import Result
from slackwater_bench.workloads.catalog import AnyWorkload


class FleetMeasurement(ABC, Generic[AnyWorkload]):
    """Base of the measurements: a member starts a query, measures and judges.

    Parameters
    ----------
    workloads
        The queries by name.
    start_s
        When the traffic of all workloads begins.
    start_limit_s, drain_limit_s
        How long queries may take to start, and the last windows to come.
    clock
        Where time comes from.
    """

    def __init__(
        self,
        spark: SparkSession,
        fleet: Fleet,
        workloads: Mapping[str, AnyWorkload],
        start_s: float,
        start_limit_s: float,
        drain_limit_s: float,
        clock: Clock = RealClock(),
    ) -> None:
        self.clock = clock
        self.spark, self.fleet, self.start_s = spark, fleet, start_s
        self.workloads = workloads
        self.batches: dict[str, list[Progress]] = defaultdict(list)
        fleet.on_progress(lambda name, progress: self.batches[name].append(progress))
        self.first_s = self.last_s = 0.0  # the measured time; known when all queries are up
        self._start_limit_s, self._drain_limit_s = start_limit_s, drain_limit_s

    @abstractmethod
    def _start(self, name: str, workload: AnyWorkload) -> None:
        """Start one query."""

    @abstractmethod
    def _measure(self) -> Result:
        """Return at ``last_s`` with what was seen besides the windows."""

    @abstractmethod
    def _passed(self, name: str, end_us: int) -> bool:
        """Tell whether a query is past the window with this end."""

    @abstractmethod
    def _judge(self) -> Result:
        """Compare the windows with the truth."""

    def _run(self, warmup_s: float, seconds: float, first_s: float | None = None) -> Result:
        """Do it all; windows count from ``first_s``, or from the end of the warm-up."""
        for name, workload in self.workloads.items():
            self._start(name, workload)
        if not self.fleet.wait_ready(self._start_limit_s):
            raise EngineError(f"not all queries started within {self._start_limit_s:.0f} s")
        begin_s = max(self.start_s, self.clock.now()) + warmup_s
        self.first_s = begin_s if first_s is None else first_s
        self.last_s = begin_s + seconds
        measured = self._measure()
        drained = self._drain()
        self.spark.sparkContext.setLogLevel("OFF")  # stopping interrupts batches; that is no error
        self.fleet.stop()
        return self._judge() | measured | {"drained": drained}

    def _drain(self) -> bool:
        """Wait until every query has passed its last measured window, or a limit."""
        deadline = Deadline(self._drain_limit_s, self.clock)
        first_us, last_us = round(self.first_s * 1e6), round(self.last_s * 1e6)
        ends = {name: w.window_ends(first_us, last_us) for name, w in self.workloads.items()}
        last = {name: found[-1] for name, found in ends.items() if found}
        while not deadline.passed:
            if all(self._passed(name, end_us) for name, end_us in last.items()):
                return True
            if self.fleet.failures:
                raise EngineError(f"queries failed: {self.fleet.failures}")
            self.clock.sleep(0.1)
        return False
