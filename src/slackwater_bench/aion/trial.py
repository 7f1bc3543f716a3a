"""One trial of approximate queries: a sampler, a workload, delays; every result row is judged.

Run as ``python -m slackwater_bench.aion.trial OUT`` with the trial as JSON on standard input, so
that every trial has a fresh JVM.
"""

import json
import math
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.common.procfs import CpuMeter
from slackwater.core.errors import EngineError
from slackwater.engines.spark.approximate.finishing import BOUNDED, RATE
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import batch_end_s, ran_a_batch
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.sources.feed import load_feed
from slackwater.engines.spark.sources.sampled_rows import new_plan_path
from slackwater.sampling.ledger import Ledger
from slackwater.statistics.intervals import summary
from slackwater.traffic import Traffic
from slackwater_bench.emissions import Emission, Progress, emissions
from slackwater_bench.workload_choice import window_of, workload_class

START_LIMIT_S = 120.0
DRAIN_LIMIT_S = 60.0
WORST = 1e9  # the error of a group that does not exist; JSON has no infinity

SETTINGS = {  # of the thesis: network delays, gaps between events
    "CC": ("constant:150ms", "constant"),
    "GG": ("gamma:60:4ms", "gamma:2"),
    "EC": ("exponential:240ms", "constant"),
    "EG": ("exponential:240ms", "gamma:2"),
}


@dataclass(frozen=True, slots=True)
class AionTrial:
    """What to run. Everything random in it follows from ``seed``."""

    sampler: str
    workload: str = "ysb"
    delays: str = "exponential:240ms"
    gaps: str = "gamma:2"
    rate: str = "1000"  # events per second of each query
    queries: int = 2
    window_s: float | None = None
    slide_s: float | None = None
    seconds: float = 30.0
    warmup_s: float = 20.0
    error: float = 0.05
    confidence: float = 0.95
    policy: str = "klink"
    shuffle_partitions: int = 2
    options: dict[str, Any] = field(default_factory=dict)  # of the workload
    seed: int = 1


def run(trial: AionTrial) -> dict[str, Any]:
    """Run the trial and judge its results."""
    conf = {"spark.sql.shuffle.partitions": str(trial.shuffle_partitions)}
    spark = session("slackwater-bench", None, "tuned", conf)
    spark.sparkContext.setLogLevel("ERROR")
    with Fleet(spark, trial.policy) as fleet:
        return _Measurement(trial, spark, fleet).result()


class _Measurement:
    def __init__(self, trial: AionTrial, spark: SparkSession, fleet: Fleet) -> None:
        self.trial, self.spark, self.fleet = trial, spark, fleet
        self.batches: dict[str, list[Progress]] = defaultdict(list)
        fleet.on_progress(lambda name, progress: self.batches[name].append(progress))
        self.start_s = float(round(time.time() + 5 + trial.queries))
        self.workloads = self._workloads()

    def _workloads(self) -> dict[str, Any]:
        trial, kind = self.trial, workload_class(self.trial.workload)
        window_s, slide_s = window_of(trial.workload, trial.window_s, trial.slide_s)
        chance = random.Random(trial.seed)
        found = {}
        for index in range(trial.queries):
            traffic = Traffic(
                start_s=self.start_s,
                rate=trial.rate,
                delays=trial.delays,
                gaps=trial.gaps,
                seed=chance.randrange(1 << 30),
            )
            phase_s = round(chance.uniform(0, slide_s), 3)
            found[f"q{index:03d}"] = kind(
                traffic=traffic,
                window_s=window_s,
                slide_s=slide_s,
                phase_s=phase_s,
                **trial.options,
            )
        return found

    def result(self) -> dict[str, Any]:
        trial, fleet = self.trial, self.fleet
        for name, workload in self.workloads.items():
            self._start(name, workload)
        if not fleet.wait_ready(START_LIMIT_S):
            raise EngineError(f"not all queries started within {START_LIMIT_S:.0f} s")
        self.first_s = max(self.start_s, time.time()) + trial.warmup_s
        self.last_s = self.first_s + trial.seconds
        meter = CpuMeter()
        time.sleep(max(0.0, self.first_s - time.time()))
        cpu, planning = meter.read(), self._planning_s()
        time.sleep(max(0.0, self.last_s - time.time()))
        cpu, planning = meter.read() - cpu, self._planning_s() - planning
        self._drain()
        self.spark.sparkContext.setLogLevel("OFF")
        fleet.stop()
        verdict = self._judge()
        return verdict | {"cpu_s": round(cpu, 3), "planner_cpu_s": round(planning, 4)}

    def _start(self, name: str, workload: Any) -> None:
        trial, windows = self.trial, workload.windows
        feed = load_feed(self.spark, workload.feed_options(plan=new_plan_path()))
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

    def _drain(self) -> None:
        """Until the last window of every query is out, or a limit."""
        until_s = time.time() + DRAIN_LIMIT_S
        first_us, last_us = round(self.first_s * 1e6), round(self.last_s * 1e6)
        last = {n: max(w.window_ends(first_us, last_us)) for n, w in self.workloads.items()}
        while time.time() < until_s:
            if all(self._closed(name, end_us) for name, end_us in last.items()):
                time.sleep(1.0)
                return
            if self.fleet.failures:
                raise EngineError(f"queries failed: {self.fleet.failures}")
            time.sleep(0.1)

    def _closed(self, name: str, end_us: int) -> bool:
        """Whether two batches have been run after the ceiling passed a window's end."""
        passed = [p for p in self.batches[name] if ran_a_batch(p) and _ledger(p) is not None]
        return sum(_ledger(p).ceiling_us > end_us for p in passed) >= 2  # type: ignore[union-attr]

    def _judge(self) -> dict[str, Any]:
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
        workload: Any,
        end_us: int,
        emission: Emission | None,
        waits_s: dict[int, float],
        columns: tuple[str, ...],
    ) -> None:
        """One window."""
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

    def _take_row(self, workload: Any, truth: dict[str, Any] | None, row: dict[str, Any]) -> None:
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

    def to_json(self) -> dict[str, Any]:
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
    """How long each window was kept open, by its end, as the source's offsets tell."""
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


def main() -> None:
    trial = AionTrial(**json.load(sys.stdin))
    Path(sys.argv[1]).write_text(json.dumps(run(trial)))


if __name__ == "__main__":
    main()
