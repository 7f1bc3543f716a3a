"""Runs one trial of approximate queries; every result row of it is judged."""

import json
import math
from dataclasses import dataclass, field
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.common.procfs import CpuMeter
from slackwater.core.clock import RealClock, sleep_until
from slackwater.core.protocols import Clock
from slackwater.engines.spark.approximate.finishing import BOUNDED, RATE
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import batch_end_s, ran_a_batch
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.sources.feed import load_feed
from slackwater.sampling.ledger import Ledger
from slackwater.statistics.intervals import summary
from slackwater_bench.aion.trial import DRAIN_LIMIT_S, START_LIMIT_S, AionTrial
from slackwater_bench.emissions import Emission, Progress, emissions
from slackwater_bench.fleet_measurement import FleetMeasurement
from slackwater_bench.trial import Result
from slackwater_bench.workloads.base import ApproximateWorkload

WORST = 1e9  # the error of a group that does not exist; JSON has no infinity


def run(trial: AionTrial) -> Result:
    """Run the trial and judge its results."""
    conf = {"spark.sql.shuffle.partitions": str(trial.shuffle_partitions)}
    spark = session("slackwater-bench", None, "tuned", conf)
    spark.sparkContext.setLogLevel("ERROR")
    with Fleet(spark, trial.policy) as fleet:
        return _Measurement(trial, spark, fleet).result()


class _Measurement(FleetMeasurement[ApproximateWorkload]):
    def __init__(
        self, trial: AionTrial, spark: SparkSession, fleet: Fleet, clock: Clock = RealClock()
    ) -> None:
        self.trial = trial
        start_s = float(round(clock.now() + 5 + trial.queries))
        workloads = trial.workloads(start_s)
        super().__init__(spark, fleet, workloads, start_s, START_LIMIT_S, DRAIN_LIMIT_S, clock)

    def result(self) -> Result:
        return self._run(self.trial.warmup_s, self.trial.seconds)

    def _measure(self) -> Result:
        meter = CpuMeter()
        sleep_until(self.first_s, self.clock)
        cpu, planning = meter.read(), self._planning_s()
        sleep_until(self.last_s, self.clock)
        cpu, planning = meter.read() - cpu, self._planning_s() - planning
        return {"cpu_s": round(cpu, 3), "planner_cpu_s": round(planning, 4)}

    def _start(self, name: str, workload: ApproximateWorkload) -> None:
        trial, windows = self.trial, workload.windows
        feed = load_feed(self.spark, workload.feed_options(sampled=True))
        results = self.fleet.approximate(
            workload.sampled_rows(feed),
            time=workload.time_column,
            window=f"{windows.size_us} microseconds",
            slide=f"{windows.slide_us} microseconds",
            offset=f"{windows.phase_us % windows.slide_us} microseconds",
            by=workload.by,
            aggregates=workload.aggregates,
            error=trial.error,
            confidence=trial.confidence,
            sampler=trial.sampler,
        )
        flat = results.select(F.col("window.end").alias("window_end"), "*").drop("window")
        self.fleet.start(flat.writeStream.format("memory").outputMode("append"), name=name)

    def _planning_s(self) -> float:
        return sum(planner.cpu_s for planner in self.fleet.planners)

    def _drain(self) -> bool:
        """Leave time for the batch after the last window, too."""
        drained = super()._drain()
        self.clock.sleep(1.0)
        return drained

    def _passed(self, name: str, end_us: int) -> bool:
        """Tell whether two batches have been run after the ceiling passed a window's end."""
        passed = [p for p in self.batches[name] if ran_a_batch(p) and _ledger(p) is not None]
        return sum(_ledger(p).ceiling_us > end_us for p in passed) >= 2  # type: ignore[union-attr]

    def _judge(self) -> Result:
        found = _Verdict()
        for name, workload in self.workloads.items():
            table = self.spark.table(name).toArrow()
            columns = tuple(c for c in table.column_names if c != "window_end")
            emitted = emissions(table, columns, self.batches[name])
            first_us, last_us = round(self.first_s * 1e6), round(self.last_s * 1e6)
            waits_s = _waits_s(self.batches[name])
            for end_us in workload.window_ends(first_us, last_us):
                found.take(workload, end_us, emitted.get(end_us), waits_s, columns)
            mine = [p for p in self.batches[name] if ran_a_batch(p)]
            found.batches += sum(self.first_s < batch_end_s(p) <= self.last_s for p in mine)
        return found.to_json()


@dataclass
class _Verdict:
    """Adds up what the windows of a trial were like."""

    latencies_s: list[float] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    errors: list[float] = field(default_factory=list)  # of the rows that promise a bound
    unbounded_errors: list[float] = field(default_factory=list)
    covered: int = 0
    intervals: int = 0
    missing_groups: int = 0
    expected: int = 0
    batches: int = 0

    def take(
        self,
        workload: ApproximateWorkload,
        end_us: int,
        emission: Emission | None,
        waits_s: dict[int, float],
        columns: tuple[str, ...],
    ) -> None:
        """Add one window."""
        truth = workload.true_values(end_us)
        self.expected += bool(truth)
        if emission is None:
            return
        self.latencies_s.append(emission.done_s - end_us / 1e6)
        self.waits_s.append(waits_s.get(end_us, math.nan))
        seen = set()
        for values in emission.rows.elements():
            row = dict(zip(columns, values, strict=True))
            group = tuple(row[key] for key in workload.by)
            seen.add(group)
            self._take_row(workload, truth.get(group), row)
        self.missing_groups += len(truth.keys() - seen)

    def _take_row(
        self, workload: ApproximateWorkload, truth: dict[str, Any] | None, row: dict[str, Any]
    ) -> None:
        self.rates.append(row[RATE])
        error = workload.error(truth, row)
        error = min(round(error, 5), WORST)
        (self.errors if row[BOUNDED] else self.unbounded_errors).append(error)
        for name in workload.aggregates if truth is not None else ():
            low, high = row.get(f"{name}_low"), row.get(f"{name}_high")
            if low is not None and high is not None and truth is not None:
                self.intervals += 1
                slip = 1e-9 * abs(truth[name])
                self.covered += low - slip <= truth[name] <= high + slip

    def to_json(self) -> Result:
        known = [(x, w) for x, w in zip(self.latencies_s, self.waits_s, strict=True) if w == w]
        return {
            "windows": {"expected": self.expected, "emitted": len(self.latencies_s)},
            "latency_s": summary(self.latencies_s),
            "latencies_s": [round(x, 3) for x in self.latencies_s],
            "waits_s": [round(w, 3) for _, w in known],
            "rests_s": [round(x - w, 3) for x, w in known],
            "processing_s": summary([x - w for x, w in known]),
            "sampling_rate": summary(self.rates),
            "errors": self.errors,
            "unbounded_errors": self.unbounded_errors,
            "missing_groups": self.missing_groups,
            "intervals": self.intervals,
            "covered": self.covered,
            "batches": self.batches,
        }


def _waits_s(progresses: list[Progress]) -> dict[int, float]:
    """Return how long each window was kept open, by its end, as the source's offsets tell."""
    found: dict[int, float] = {}
    before: Ledger | None = None
    for progress in progresses:
        ledger = _ledger(progress)
        if ledger is None:
            continue
        if before is not None:
            for end_us in range(before.ceiling_us, ledger.ceiling_us, ledger.grid.slide_us):
                found[end_us] = ledger.plan_of(end_us).wait_us / 1e6
        before = ledger
    return found


def _ledger(progress: Progress) -> Ledger | None:
    offset = (progress.get("sources") or [{}])[0].get("endOffset")
    offset = json.loads(offset) if isinstance(offset, str) else offset
    if not isinstance(offset, dict) or "s" not in offset:
        return None
    return Ledger.of_json(offset["s"])
