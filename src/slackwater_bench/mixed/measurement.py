"""Runs one trial of a mixed fleet: latency and age by kind of query, every result checked."""

import tempfile
import time
from collections import defaultdict
from pathlib import Path

from pyspark.sql import SparkSession

from slackwater import policies
from slackwater.common.procfs import CpuMeter, usable_cpus
from slackwater.core.clock import Deadline, RealClock, sleep_until
from slackwater.core.errors import EngineError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import batch_end_s, ran_a_batch
from slackwater.engines.spark.session.session import session
from slackwater_bench.emissions import Progress
from slackwater_bench.footprint import Footprint, growth
from slackwater_bench.mixed.files import FileWriter
from slackwater_bench.mixed.judge import KindJudge
from slackwater_bench.mixed.kinds import Files, Kind
from slackwater_bench.mixed.trial import MixedTrial
from slackwater_bench.resources import driver_heap, sample
from slackwater_bench.trial import Result

START_LIMIT_S = 600.0
COLLECT_S = 2.0  # before the measured time: the driver's garbage is collected
DRAIN_S = 45.0  # how long results of measured windows are waited for


def run(trial: MixedTrial) -> Result:
    """Run the trial and judge its results."""
    gated = policies.load(trial.policy, **trial.parameters).gated
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    if trial.fair:
        conf["spark.scheduler.mode"] = "FAIR"
    spark = session("slackwater-bench", trial.master, trial.profile, conf)
    spark.sparkContext.setLogLevel("ERROR")
    with (
        tempfile.TemporaryDirectory(
            prefix="slackwater-mixed-", ignore_cleanup_errors=True
        ) as folder,  # stores of state are looked after for a while longer
        Fleet(
            spark,
            trial.policy,
            slots=trial.slots,
            gate="auto" if gated else "none",
            parameters=trial.parameters,
            one_batch=trial.one_batch,  # type: ignore[arg-type]
        ) as fleet,
    ):
        return MixedMeasurement(trial, spark, fleet, Path(folder)).result()


class MixedMeasurement:
    """Starts the queries of a trial, waits, stops them, and has every result judged."""

    def __init__(self, trial: MixedTrial, spark: SparkSession, fleet: Fleet, folder: Path) -> None:
        self.trial, self.spark, self.fleet, self.folder = trial, spark, fleet, folder
        self.clock = RealClock()
        self.kinds = trial.fleet()
        self.batches: dict[str, list[Progress]] = defaultdict(list)
        fleet.on_progress(lambda name, progress: self.batches[name].append(progress))

    def result(self) -> Result:
        """Run the trial."""
        for name in self.kinds:
            (self.folder / name / "in").mkdir(parents=True)
        files = [
            self.folder / n / "in" for n, kind in self.kinds.items() if isinstance(kind, Files)
        ]
        writer = FileWriter(files)
        try:
            for name, kind in self.kinds.items():
                self._start(name, kind)
            if not self.fleet.wait_ready(START_LIMIT_S):
                raise EngineError(f"not all queries started within {START_LIMIT_S:.0f} s")
            first_s = self.clock.now() + self.trial.warmup_s
            last_s = first_s + self.trial.seconds
            measured = self._measure(first_s, last_s, writer)
            self._drain(last_s)
        finally:
            writer.close()
        failures = dict(self.fleet.failures)
        self.spark.sparkContext.setLogLevel("OFF")  # stopping interrupts batches; that is no error
        self.fleet.stop()
        return measured | {"failures": failures} | self._judge(first_s, last_s)

    def _start(self, name: str, kind: Kind) -> None:
        folder = self.folder / name
        writer = kind.writer(kind.frame(self.spark, folder / "in"), folder)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        trigger_s = kind.trigger_s if self.trial.trigger_s is None else self.trial.trigger_s
        if trigger_s is not None:
            milliseconds = round(trigger_s * 1000)
            writer = writer.trigger(processingTime=f"{milliseconds} milliseconds")
        target_s = kind.target_s if self.trial.promise else None
        self.fleet.start(writer, name=name, target=target_s)

    def _measure(self, first_s: float, last_s: float, writer: FileWriter) -> Result:
        meter, heap = CpuMeter(), driver_heap(self.spark)
        footprint = Footprint(self.spark, lambda: self.fleet.controller_pid)
        sleep_until(first_s - COLLECT_S, self.clock)
        before_bytes = footprint.collected_bytes()
        sleep_until(first_s, self.clock)
        cpu, controller = meter.read(), self.fleet.controller_cpu_s()
        python = _python_cpu_s(writer)
        samples = sample(first_s, last_s, meter.read, heap, self.clock, footprint.read)
        cpu, controller = meter.read() - cpu, self.fleet.controller_cpu_s() - controller
        python = _python_cpu_s(writer) - python + controller
        machine_s = self.trial.seconds * len(usable_cpus())
        return {
            "queries": len(self.kinds),
            "alive": len(self.kinds.keys() - self.fleet.ended),
            "seconds": self.trial.seconds,
            "cpu_s": round(cpu, 3),
            "controller_cpu_s": round(controller, 4),
            "python_cpu_s": round(python, 4),
            "controller_share": round(controller / machine_s, 5),
            "python_share": round(python / cpu, 5) if cpu else None,
            "heap_collected_bytes": [before_bytes, footprint.collected_bytes()],
            "growth_percent": growth(samples),
            "samples": samples,
        }

    def _drain(self, last_s: float) -> None:
        """Wait until every query has run a batch on rows of after the measured time, or a limit."""
        limit = Deadline(DRAIN_S, self.clock)
        awaited = [name for name, kind in self.kinds.items() if kind.windowed]
        sleep_until(last_s + 4, self.clock)
        limit.wait_for(lambda: all(self._passed(name, last_s) for name in awaited), every_s=0.2)

    def _passed(self, name: str, last_s: float) -> bool:
        newest = [p for p in self.batches[name] if ran_a_batch(p)]
        return bool(newest) and KindJudge.watermark_s(newest[-1]) >= last_s

    def _judge(self, first_s: float, last_s: float) -> Result:
        judge = KindJudge(first_s, last_s)
        for name, kind in self.kinds.items():
            found = kind.results(self.spark, name, self.folder / name)
            judge.take(name, kind, found, [p for p in self.batches[name] if ran_a_batch(p)])
        ended = [batch_end_s(p) for found in self.batches.values() for p in found if ran_a_batch(p)]
        batches = sum(first_s < end_s <= last_s for end_s in ended)
        return judge.verdict() | {"batches": batches}


def _python_cpu_s(writer: FileWriter) -> float:
    """Return the CPU time of the driver's Python so far, without what writes and measures."""
    return time.process_time() - time.thread_time() - writer.cpu_s()
