"""One arm of the micro-batch benchmark: a fresh JVM with a given choice of settings."""

import shutil
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from slackwater.common.procfs import CpuMeter, reaped_cpu, thread_cpu
from slackwater.core.clock import Deadline, RealClock
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.session.profile import SETTINGS
from slackwater.engines.spark.session.session import build_session
from slackwater_bench.resources import cpu_by_group
from slackwater_bench.trial import Result, Trial

WARMUP_LIMIT_S = 300.0
_POLL_S = 0.5
_START_MS = 1_700_000_000_000  # event time of the first row; any moment will do


@dataclass(frozen=True, slots=True)
class SessionTrial(Trial):
    """What one arm runs."""

    runner: ClassVar[str] = "slackwater_bench.costs.session_trial:run"

    arm: str
    settings: tuple[str, ...]  # names of rows in the profile
    queries: int = 4
    seconds: float = 15.0  # measured
    warmup_batches: int = 40  # per query, not measured
    rows: int = 100  # per micro-batch
    conf: dict[str, str] = field(default_factory=dict)  # further Spark configuration, to try out
    jvm_flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BatchCost:
    """What one arm measured; all milliseconds are per micro-batch."""

    batches: int
    cpu_ms: float  # of the whole process tree
    batches_per_s: float
    forked_ms: float  # of it, CPU of processes that Spark started and that have ended
    threads_ms: dict[str, float]  # CPU by group of threads
    phases_ms: dict[str, float]  # wall time by phase, median


@dataclass(frozen=True, slots=True)
class _Reading:
    time_s: float
    cpu_s: float
    reaped_s: float
    batches: int
    threads: dict[int, tuple[str, float]]


def run(trial: SessionTrial, clock: Clock = RealClock()) -> Result:
    """Start Spark, warm it up, measure, stop it."""
    meter = CpuMeter()
    spark = _session(trial)
    folder = Path(tempfile.mkdtemp(prefix="slackwater-bench-"))
    queries: list[StreamingQuery] = []
    try:
        queries = [start_query(spark, i, trial.rows, folder) for i in range(trial.queries)]
        jvm_pid = int(spark._jvm.java.lang.ProcessHandle.current().pid())  # type: ignore[union-attr]
        _warm_up(queries, trial.warmup_batches, clock)
        before = _read(meter, jvm_pid, queries, clock)
        clock.sleep(trial.seconds)
        after = _read(meter, jvm_pid, queries, clock)
        return asdict(_cost(before, after, queries))
    finally:
        for query in queries:
            query.stop()
        spark.stop()
        shutil.rmtree(folder, ignore_errors=True)


def start_query(spark: SparkSession, number: int, rows: int, folder: Path) -> StreamingQuery:
    """Start a tumbling-window count per key, as fast as it can, with a real checkpoint."""
    counts = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows)
        .option("numPartitions", 2)
        .option("advanceMillisPerBatch", 1000)
        .option("startTimestamp", _START_MS)
        .load()
        .withWatermark("timestamp", "0 seconds")
        .groupBy(F.window("timestamp", "3 seconds"), (F.col("value") % 10).alias("key"))
        .count()
    )
    return (
        counts.writeStream.queryName(f"bench{number}")
        .format("noop")
        .outputMode("append")
        .option("checkpointLocation", str(folder / str(number)))
        .start()
    )


def _session(trial: SessionTrial) -> SparkSession:
    chosen = tuple(setting for setting in SETTINGS if setting.name in trial.settings)
    conf = {"spark.sql.shuffle.partitions": "2"} | trial.conf
    if trial.jvm_flags:
        conf["spark.driver.extraJavaOptions"] = " ".join(trial.jvm_flags)
    spark = build_session("slackwater-bench", None, chosen, conf)
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _warm_up(queries: list[StreamingQuery], batches: int, clock: Clock) -> None:
    deadline = Deadline(WARMUP_LIMIT_S, clock)
    while (slowest := min(_batch_number(query) for query in queries)) < batches:
        if deadline.passed:
            raise EngineError(f"only {slowest} of {batches} warm-up batches in {WARMUP_LIMIT_S} s")
        for query in queries:
            if (error := query.exception()) is not None:
                raise EngineError(f"a query failed: {str(error).splitlines()[0]}")
        clock.sleep(_POLL_S)


def _batch_number(query: StreamingQuery) -> int:
    progress: Any = query.lastProgress
    return -1 if progress is None else int(progress["batchId"])


def _read(meter: CpuMeter, jvm_pid: int, queries: list[StreamingQuery], clock: Clock) -> _Reading:
    return _Reading(
        time_s=clock.monotonic(),
        cpu_s=meter.read(),
        reaped_s=reaped_cpu(jvm_pid),
        batches=sum(_batch_number(query) for query in queries),
        threads=thread_cpu(jvm_pid),
    )


def _cost(before: _Reading, after: _Reading, queries: list[StreamingQuery]) -> BatchCost:
    batches = after.batches - before.batches
    if batches <= 0:
        raise EngineError("no micro-batch ended while measuring: measure for longer (--seconds)")
    cpu_s = after.cpu_s - before.cpu_s
    forked_s = after.reaped_s - before.reaped_s
    groups = cpu_by_group(before.threads, after.threads)
    groups["ended threads, Python"] = max(0.0, cpu_s - forked_s - sum(groups.values()))
    return BatchCost(
        batches=batches,
        cpu_ms=1000 * cpu_s / batches,
        batches_per_s=batches / (after.time_s - before.time_s),
        forked_ms=1000 * forked_s / batches,
        threads_ms={group: 1000 * seconds / batches for group, seconds in groups.items()},
        phases_ms=_phases(queries),
    )


def _phases(queries: list[StreamingQuery]) -> dict[str, float]:
    """Return the median wall time of each phase over the progress that Spark still remembers."""
    durations: dict[str, list[float]] = {}
    for query in queries:
        for progress in query.recentProgress[-50:]:  # the warm end
            for phase, milliseconds in progress["durationMs"].items():
                durations.setdefault(phase, []).append(float(milliseconds))
    return {phase: median(values) for phase, values in durations.items()}
