"""One trial: a fleet of queries under one policy on a Spark of its own, for a while.

Run as ``python -m slackwater_bench.trial OUT`` with the trial as JSON on standard input, so that
every trial has a fresh JVM and leaves nothing behind.
"""

import json
import random
import sys
import time
from collections import defaultdict
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from slackwater import policies
from slackwater.common.procfs import CpuMeter, thread_cpu
from slackwater.core.errors import EngineError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import instant_s
from slackwater.engines.spark.session.session import session
from slackwater.traffic import Traffic
from slackwater_bench.emissions import Progress
from slackwater_bench.judge import Judge
from slackwater_bench.sampler import driver_heap, sample
from slackwater_bench.threads import cpu_by_group, driver_share
from slackwater_bench.workload_choice import window_of, workload_class
from slackwater_bench.workloads.base import Workload

START_LIMIT_S = 300.0  # for all queries to reach their first trigger
DRAIN_LIMIT_S = 90.0  # how long results of measured windows are waited for after the last of them

_POOL = "spark.scheduler.pool"


@dataclass(frozen=True, slots=True)
class Trial:
    """What to run. Everything random in it follows from ``seed``."""

    policy: str
    profile: str = "tuned"
    workload: str = "ysb"
    queries: int = 8
    rate: str = "1000"  # events per second of each query
    delays: str = "uniform:0:300ms"
    window_s: float | None = None  # None: the workload's own, filled in at once
    slide_s: float | None = None
    seconds: float = 30.0  # measured
    warmup_s: float = 15.0
    aligned: bool = False  # all windows end together; else each query has a random phase
    campaigns: int = 100  # of workloads that have some
    partitions: int = 1
    shuffle_partitions: int = 2
    slots: int | None = None
    gate: str = "auto"
    controller: str = "process"
    master: str | None = None
    trigger_s: float | None = None  # a processing-time trigger; None: as fast as it goes
    fair: bool = False  # Spark's FAIR scheduler, a pool for each query
    parameters: dict[str, Any] = field(default_factory=dict)  # for the policy's constructor
    options: dict[str, Any] = field(default_factory=dict)  # further ones of the workload
    heap: str | None = None  # of the driver, such as 512m
    backlog_s: float = 0.0  # events of so long ago wait when the queries start, and are measured
    seed: int = 1

    def __post_init__(self) -> None:
        window_s, slide_s = window_of(self.workload, self.window_s, self.slide_s)
        object.__setattr__(self, "window_s", window_s)
        object.__setattr__(self, "slide_s", slide_s)


def workloads(trial: Trial, start_s: float) -> dict[str, Workload]:
    """The queries of a trial by name, each with traffic and phase of its own."""
    kind = workload_class(trial.workload)
    own: dict[str, Any] = {"window_s": trial.window_s, "slide_s": trial.slide_s}
    if any(option.name == "campaigns" for option in fields(kind)):
        own["campaigns"] = trial.campaigns
    own |= trial.options
    chance = random.Random(trial.seed)
    found: dict[str, Workload] = {}
    for index in range(trial.queries):
        traffic = Traffic(
            start_s=start_s,
            rate=trial.rate,
            delays=trial.delays,
            partitions=trial.partitions,
            seed=chance.randrange(1 << 30),
        )
        phase_s = 0.0 if trial.aligned else chance.uniform(0, trial.slide_s or 0.0)
        found[f"q{index:03d}"] = kind(traffic=traffic, phase_s=phase_s, **own)
    return found


def run(trial: Trial) -> dict[str, Any]:
    """Run the trial and judge its results."""
    parameters = dict(trial.parameters)
    if trial.policy in policies.names():  # a user's own may not take a seed
        parameters = {"seed": trial.seed} | parameters
    gated = policies.load(trial.policy, **parameters).gated
    conf = {"spark.sql.shuffle.partitions": str(trial.shuffle_partitions)}
    if trial.heap:
        conf["spark.driver.memory"] = trial.heap
    if trial.fair:
        conf["spark.scheduler.mode"] = "FAIR"
    spark = session("slackwater-bench", trial.master, trial.profile, conf)
    spark.sparkContext.setLogLevel("ERROR")
    fleet = Fleet(
        spark,
        trial.policy,
        slots=trial.slots,
        gate=trial.gate if gated else "none",  # type: ignore[arg-type]
        controller=trial.controller,  # type: ignore[arg-type]
        parameters=parameters,
    )
    with fleet:
        return Measurement(trial, spark, fleet).result()


class Measurement:
    """Starts the queries, waits, stops them, and has every window judged."""

    def __init__(self, trial: Trial, spark: SparkSession, fleet: Fleet) -> None:
        self.trial = trial
        self.spark = spark
        self.fleet = fleet
        self.batches: dict[str, list[Progress]] = defaultdict(list)
        fleet.on_progress(lambda name, progress: self.batches[name].append(progress))
        # Traffic begins when all queries should be up, so that none starts with a backlog.
        ahead_s = -trial.backlog_s if trial.backlog_s else 5 + trial.queries
        self.start_s = float(round(time.time() + ahead_s))
        self.workloads = workloads(trial, self.start_s)
        self.first_s = self.last_s = 0.0  # the measured time; known when all queries are up

    def result(self) -> dict[str, Any]:
        for name, workload in self.workloads.items():
            self._start(name, workload)
        if not self.fleet.wait_ready(START_LIMIT_S):
            raise EngineError(f"not all queries started within {START_LIMIT_S:.0f} s")
        begin_s = max(self.start_s, time.time()) + self.trial.warmup_s
        self.first_s = self.start_s if self.trial.backlog_s else begin_s
        self.last_s = begin_s + self.trial.seconds
        meter, heap = CpuMeter(), driver_heap(self.spark)
        time.sleep(max(0.0, begin_s - time.time()))
        jvm = int(self.spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        cpu, controller = meter.read(), self.fleet.controller_cpu_s()
        threads = thread_cpu(jvm)
        samples = sample(begin_s, self.last_s, meter.read, heap)
        cpu, controller = meter.read() - cpu, self.fleet.controller_cpu_s() - controller
        share = driver_share(cpu_by_group(threads, thread_cpu(jvm)))
        drained = self._drain()
        self.spark.sparkContext.setLogLevel("OFF")  # stopping interrupts batches; that is no error
        self.fleet.stop()
        return self._judge() | {
            "seconds": self.trial.seconds,
            "cpu_s": round(cpu, 3),
            "controller_cpu_s": round(controller, 4),
            "driver_share": round(share, 4),
            "drained": drained,
            "samples": samples,
        }

    def _start(self, name: str, workload: Workload) -> None:
        frame = workload.query(self.spark)
        if self.fleet.gate_kind == "source":
            frame = self.fleet.gate(frame, name)
        writer = frame.writeStream.format("memory").outputMode("append")
        if self.trial.trigger_s is not None:
            milliseconds = round(self.trial.trigger_s * 1000)
            writer = writer.trigger(processingTime=f"{milliseconds} milliseconds")
        if not self.trial.fair:
            self.fleet.start(writer, name=name)
            return
        # The query's thread inherits the property from the thread that starts it.
        self.spark.sparkContext.setLocalProperty(_POOL, name)
        try:
            self.fleet.start(writer, name=name)
        finally:
            self.spark.sparkContext.setLocalProperty(_POOL, None)  # type: ignore[arg-type]

    def _drain(self) -> bool:
        """Wait until the watermark of every query has passed the last measured window."""
        until_s = time.time() + DRAIN_LIMIT_S
        first_us, last_us = round(self.first_s * 1e6), round(self.last_s * 1e6)
        ends = {name: w.window_ends(first_us, last_us) for name, w in self.workloads.items()}
        last = {name: found[-1] / 1e6 for name, found in ends.items() if found}
        while time.time() < until_s:
            if all(self._watermark_s(name) >= end_s for name, end_s in last.items()):
                return True
            if self.fleet.failures:
                raise EngineError(f"queries failed: {self.fleet.failures}")
            time.sleep(0.1)
        return False

    def _watermark_s(self, name: str) -> float:
        if not self.batches[name]:
            return 0.0
        progress = self.batches[name][-1]
        return instant_s(progress.get("eventTime", {}).get("watermark", "1970-01-01T00:00:00Z"))

    def _judge(self) -> dict[str, Any]:
        judge = Judge(self.first_s, self.last_s, asking=self.fleet.gate_kind != "source")
        for name, workload in self.workloads.items():
            judge.take(workload, self.spark.table(name).toArrow(), self.batches[name])
        return judge.verdict()


def main() -> None:
    trial = Trial(**json.load(sys.stdin))
    Path(sys.argv[1]).write_text(json.dumps(run(trial)))


if __name__ == "__main__":
    main()
