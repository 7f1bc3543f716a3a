"""One trial: a fleet of queries under one policy on a Spark of its own, for a while.

Run as ``python -m slackwater.bench.trial OUT`` with the trial as JSON on standard input, so that
every trial has a fresh JVM and leaves nothing behind.
"""

import json
import random
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from slackwater.bench.cpu import CpuMeter
from slackwater.bench.statistics import summary
from slackwater.core.errors import EngineError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.observer import batch_end_s, instant_s, ran_a_batch
from slackwater.engines.spark.session import session
from slackwater.traffic import Traffic
from slackwater.workloads.base import WindowRows, Workload
from slackwater.workloads.ysb import Ysb

Progress = dict[str, Any]

START_LIMIT_S = 300.0  # for all queries to reach their first trigger
DRAIN_LIMIT_S = 90.0  # how long results of measured windows are waited for after the last of them


@dataclass(frozen=True, slots=True)
class Trial:
    """What to run. Everything random in it follows from ``seed``."""

    policy: str
    profile: str = "tuned"
    workload: str = "ysb"
    queries: int = 8
    rate: str = "1000"  # events per second of each query
    delays: str = "uniform:0:300ms"
    window_s: float = 3.0
    seconds: float = 30.0  # measured
    warmup_s: float = 15.0
    aligned: bool = False  # all windows end together; else each query has a random phase
    campaigns: int = 100
    partitions: int = 1
    shuffle_partitions: int = 2
    slots: int | None = None
    gate: str = "auto"
    controller: str = "process"
    master: str | None = None
    seed: int = 1


def workloads(trial: Trial, start_s: float) -> dict[str, Ysb]:
    """The queries of a trial by name, each with traffic and phase of its own."""
    chance = random.Random(trial.seed)
    return {
        f"q{index:03d}": Ysb(
            traffic=Traffic(
                start_s=start_s,
                rate=trial.rate,
                delays=trial.delays,
                partitions=trial.partitions,
                seed=chance.randrange(1 << 30),
            ),
            campaigns=trial.campaigns,
            window_s=trial.window_s,
            phase_s=0.0 if trial.aligned else chance.uniform(0, trial.window_s),
        )
        for index in range(trial.queries)
    }


def run(trial: Trial) -> dict[str, Any]:
    """Run the trial and judge its results."""
    conf = {"spark.sql.shuffle.partitions": str(trial.shuffle_partitions)}
    spark = session("slackwater-bench", trial.master, trial.profile, conf)
    spark.sparkContext.setLogLevel("ERROR")
    fleet = Fleet(
        spark,
        trial.policy,
        slots=trial.slots,
        gate=trial.gate,  # type: ignore[arg-type]
        controller=trial.controller,  # type: ignore[arg-type]
    )
    with fleet:
        return Measurement(trial, spark, fleet).result()


class Measurement:
    """Starts the queries, waits, stops them, and compares every window with the ground truth."""

    def __init__(self, trial: Trial, spark: SparkSession, fleet: Fleet) -> None:
        self.trial = trial
        self.spark = spark
        self.fleet = fleet
        self.batches: dict[str, list[Progress]] = defaultdict(list)
        fleet.on_progress(lambda name, progress: self.batches[name].append(progress))
        # Traffic begins when all queries should be up, so that none starts with a backlog.
        self.start_s = float(round(time.time() + 5 + trial.queries))
        self.workloads = workloads(trial, self.start_s)
        self.first_s = self.last_s = 0.0  # the measured time; known when all queries are up

    def result(self) -> dict[str, Any]:
        for name, workload in self.workloads.items():
            self._start(name, workload)
        if not self.fleet.wait_ready(START_LIMIT_S):
            raise EngineError(f"not all queries started within {START_LIMIT_S:.0f} s")
        self.first_s = max(self.start_s, time.time()) + self.trial.warmup_s
        self.last_s = self.first_s + self.trial.seconds
        meter = CpuMeter()
        _sleep_until(self.first_s)
        cpu, controller = meter.read(), self.fleet.controller_cpu_s()
        _sleep_until(self.last_s)
        cpu, controller = meter.read() - cpu, self.fleet.controller_cpu_s() - controller
        drained = self._drain()
        self.spark.sparkContext.setLogLevel("OFF")  # stopping interrupts batches; that is no error
        self.fleet.stop()
        return self._judge() | {
            "cpu_s": round(cpu, 3),
            "controller_cpu_s": round(controller, 4),
            "drained": drained,
        }

    def _start(self, name: str, workload: Workload) -> None:
        frame = workload.query(self.spark, knob=self.fleet.knobs.path(name))
        if self.fleet.gate_kind == "source":
            frame = self.fleet.gate(frame, name)
        writer = frame.writeStream.format("memory").outputMode("append")
        self.fleet.start(writer, name=name)

    def _drain(self) -> bool:
        """Wait until the watermark of every query has passed the last measured window."""
        until_s = time.time() + DRAIN_LIMIT_S
        ends = {name: self._ends(w)[-1] / 1e6 for name, w in self.workloads.items()}
        while time.time() < until_s:
            if all(self._watermark_s(name) >= end_s for name, end_s in ends.items()):
                return True
            if self.fleet.failures:
                raise EngineError(f"queries failed: {self.fleet.failures}")
            time.sleep(0.1)
        return False

    def _ends(self, workload: Workload) -> list[int]:
        return workload.window_ends(round(self.first_s * 1e6), round(self.last_s * 1e6))

    def _watermark_s(self, name: str) -> float:
        if not self.batches[name]:
            return 0.0
        progress = self.batches[name][-1]
        return instant_s(progress.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00Z"))

    def _judge(self) -> dict[str, Any]:
        latencies: list[float] = []
        expected = emitted = wrong = 0
        for name, workload in self.workloads.items():
            truth = workload.truth(round(self.first_s * 1e6), round(self.last_s * 1e6))
            rows, done_s = self._results(name)
            expected += len(truth)
            for end_us, wanted in truth.items():
                if end_us in rows:
                    emitted += 1
                    latencies.append(done_s[end_us] - end_us / 1e6)
                    wrong += rows[end_us] != wanted
        measured = [p for progresses in self.batches.values() for p in progresses]
        measured = [p for p in measured if ran_a_batch(p) and self._in_interval(p)]
        events = sum(p["numInputRows"] for p in measured)
        return {
            "latency_s": summary(latencies),
            "latencies_s": [round(value, 3) for value in latencies],
            "watermark_delay_s": max(w.traffic.max_delay_s for w in self.workloads.values()),
            "windows": {"expected": expected, "emitted": emitted, "wrong": wrong},
            "events": events,
            "throughput_eps": round(events / self.trial.seconds, 1),
            "batches": len(measured),
        }

    def _in_interval(self, progress: Progress) -> bool:
        return self.first_s < batch_end_s(progress) <= self.last_s

    def _results(self, name: str) -> tuple[WindowRows, dict[int, float]]:
        """Rows by window, and when each window was complete.

        The memory sink keeps rows in the order of batches and Spark tells how many each wrote.
        """
        table = self.spark.table(name).toArrow()
        ends = table.column("window_end").cast("int64").to_pylist()
        values = [table.column(column).to_pylist() for column in Ysb.columns]
        rows: WindowRows = defaultdict(Counter)
        done_s: dict[int, float] = {}
        position = 0
        for progress in filter(ran_a_batch, self.batches[name]):
            written = progress["sink"]["numOutputRows"]
            for index in range(position, min(position + written, len(ends))):
                rows[ends[index]][tuple(column[index] for column in values)] += 1
                done_s[ends[index]] = batch_end_s(progress)
            position += written
        return rows, done_s


def _sleep_until(time_s: float) -> None:
    time.sleep(max(0.0, time_s - time.time()))


def main() -> None:
    trial = Trial(**json.load(sys.stdin))
    result = asdict(trial) | run(trial)
    Path(sys.argv[1]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
