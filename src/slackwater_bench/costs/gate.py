"""What a gate costs: time and CPU added to each batch, memory of each query.

All kinds run in one Spark, in turn, in an order that rotates from round to round.
"""

import statistics
from collections import defaultdict
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery
from rich.table import Table

from slackwater.common.procfs import CpuMeter
from slackwater.core.clock import Deadline, RealClock, Timer
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import Progress, instant_s, ran_a_batch, read_progress
from slackwater.engines.spark.session.session import session
from slackwater_bench.tables import figures_table

KINDS = ("none", "clock", "source")
WARMUP_BATCHES = 8  # of each query, not counted
START_LIMIT_S = 120.0
BATCHES_LIMIT_S = 300.0  # until every query of many has run two
SETTLE_S = 0.5  # after a gate was put on or taken off; putting it on is not what is measured
ALWAYS = 1000  # slots: every arrival is granted at once


def measure(
    rounds: int,
    seconds: float,
    queries: int,
    show: Callable[[str], None] = lambda line: None,
) -> dict[str, Any]:
    """Measure all kinds; the result is what ``--json`` writes (docs/bench-json.md)."""
    steps = iter(range(1, len(KINDS) * (rounds + 2) + 2))
    total = len(KINDS) * (rounds + 2) + 1

    def on_step(what: str) -> None:
        show(f"{next(steps)} of {total}: {what}")

    conf = {"spark.sql.shuffle.partitions": "2"}
    spark = session("slackwater-bench-gate", None, "tuned", conf)
    spark.sparkContext.setLogLevel("OFF")  # stopping interrupts batches; that is no error
    try:
        runs: dict[str, list[dict[str, float]]] = defaultdict(list)
        for number in range(rounds + 1):  # the first round warms the JVM and does not count
            for turn in range(len(KINDS)):
                kind = KINDS[(number + turn) % len(KINDS)]
                on_step(f"batches, gate {kind}, round {number}")
                figures = _batches(spark, kind, seconds)
                if number:
                    runs[kind].append(figures)
        on_step("one query, clock gate put on and taken off in turn")
        toggled = _toggled(spark, rounds, seconds)
        memory = {}
        for kind in KINDS:
            on_step(f"memory of {queries} queries, gate {kind}")
            memory[kind] = _memory(spark, kind, queries)
    finally:
        spark.stop()
    kinds = {
        kind: _pool(runs[kind]) | {"throughput_ratio": _paired(runs, kind)} | memory[kind]
        for kind in KINDS
    }
    kinds["clock"]["throughput_ratio_same_query"] = toggled
    return {"rounds": rounds, "seconds": seconds, "queries": queries, "gates": kinds}


def _frame(spark: SparkSession, rows_per_batch: int = 1000) -> DataFrame:
    """Return a stateful query that always has work: every trigger runs a batch."""
    source = (
        spark.readStream.format("rate-micro-batch")
        .option("rowsPerBatch", rows_per_batch)
        .option("advanceMillisPerBatch", 1000)
        .load()
    )
    window = F.window("timestamp", "3 seconds")
    return source.withWatermark("timestamp", "1 second").groupBy(window).count()


def _start(fleet: Fleet, kind: str, name: str, frame: DataFrame) -> None:
    if kind == "source":
        frame = fleet.gate(frame, name)
    fleet.start(frame.writeStream.format("noop").outputMode("update"), name=name)


def _batches(
    spark: SparkSession, kind: str, seconds: float, clock: Clock = RealClock()
) -> dict[str, float]:
    """Run one query as fast as it can, alone."""
    progresses: list[Progress] = []
    with Fleet(spark, "fcfs", gate=kind, slots=ALWAYS) as fleet:  # type: ignore[arg-type]
        fleet.on_progress(lambda _, progress: progresses.append(progress))
        _start(fleet, kind, "q", _frame(spark))
        warm = Deadline(START_LIMIT_S).wait_for(
            lambda: len(progresses) >= WARMUP_BATCHES or bool(fleet.failures), every_s=0.02
        )
        if not warm or fleet.failures:
            raise EngineError(f"gate {kind}: the query does not run: {fleet.failures}")
        meter = CpuMeter()
        cpu_s, controller_s = meter.read(), fleet.controller_cpu_s()
        first, timer = len(progresses), Timer()
        clock.sleep(seconds)
        last, took_s = len(progresses), timer.elapsed_s
        cpu_s, controller_s = meter.read() - cpu_s, fleet.controller_cpu_s() - controller_s
        count = last - first
        if count < 2:
            raise EngineError(
                f"gate {kind}: {count} batches in {seconds:g} s are too few; use more"
            )
    return {
        "batches": count,
        "batches_per_s": count / took_s,
        "cpu_ms": 1000 * cpu_s / count,
        "controller_cpu_ms": 1000 * controller_s / count,
        "wait_ms": _wait_ms(progresses[first:last]),
    }


def _toggled(spark: SparkSession, rounds: int, seconds: float, clock: Clock = RealClock()) -> float:
    """Compare batches of one running query with the clock gate and without, alternating.

    Free of the differences between two starts of a query, which are larger than the gate's cost.
    """
    writer = _frame(spark).writeStream.format("noop").outputMode("update")
    query = writer.queryName("toggled").start()
    counts = {True: 0, False: 0}
    try:
        with Fleet(spark, "fcfs", gate="clock", slots=ALWAYS) as fleet:
            clock.sleep(2 * seconds)
            for number in range(2 * rounds):
                # Held, free, free, held, …: a steady drift counts for both alike.
                held = number % 4 in (0, 3)
                if held:
                    fleet.hold(query, name="toggled")
                clock.sleep(SETTLE_S)
                counts[held] += _count(query, seconds / 2, clock)
                if held:
                    fleet.release("toggled")
    finally:
        query.stop()
    return round(counts[True] / counts[False], 4)


def _count(query: StreamingQuery, seconds: float, clock: Clock) -> int:
    first = query.lastProgress.batchId  # type: ignore[union-attr]
    clock.sleep(seconds)
    return int(query.lastProgress.batchId - first)  # type: ignore[union-attr]


def _wait_ms(progresses: list[Progress]) -> float:
    """Return the time of a batch that is no work: between triggers, and for offsets.

    The clock gate holds between two triggers, the source gate while Spark asks for offsets.
    """
    ran = [read_progress(p) for p in progresses if ran_a_batch(p)]
    waits = []
    for before, after in pairwise(ran):
        end_s = instant_s(before.timestamp) + (before.duration_ms.trigger_execution or 0) / 1000
        gap_ms = 1000 * (instant_s(after.timestamp) - end_s)
        waits.append(gap_ms + (after.duration_ms.latest_offset or 0))
    return statistics.fmean(waits)


def _memory(spark: SparkSession, kind: str, queries: int) -> dict[str, float]:
    """Start many queries at once: all must run; return what each takes."""
    with Fleet(spark, "round-robin", gate=kind) as fleet:  # type: ignore[arg-type]
        heap_b, python_b = _heap_b(spark), _python_b()
        timer = Timer()
        for index in range(queries):
            _start(fleet, kind, f"q{index}", _frame(spark, rows_per_batch=10))
        fleet.wait_ready(600)
        started_s = timer.elapsed_s
        Deadline(BATCHES_LIMIT_S).wait_for(
            lambda: all(q.batches >= 2 for q in fleet.status().queries), every_s=0.5
        )
        status = fleet.status().queries
        result = {
            "queries_started": float(sum(q.state not in ("failed", "stopped") for q in status)),
            "queries_with_batches": float(sum(q.batches >= 2 for q in status)),
            "restarts": float(sum(q.restarts for q in status)),
            "start_s": started_s,
            "heap_mb_per_query": (_heap_b(spark) - heap_b) / queries / 2**20,
            "python_mb_per_query": (_python_b() - python_b) / queries / 2**20,
        }
    return {key: round(value, 3) for key, value in result.items()}


def _heap_b(spark: SparkSession) -> int:
    jvm: Any = spark._jvm
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


def _python_b() -> int:
    """Return memory of the Python processes below this one; shared pages count in part."""
    total = 0
    for child in psutil.Process().children(recursive=True):
        try:
            if "python" in child.name():
                rollup = Path(f"/proc/{child.pid}/smaps_rollup").read_text()
                total += next(
                    1024 * int(line.split()[1])
                    for line in rollup.splitlines()
                    if line.startswith("Pss:")
                )
        except (psutil.NoSuchProcess, OSError, StopIteration):
            continue
    return total


def _pool(runs: list[dict[str, float]]) -> dict[str, float]:
    return {key: round(statistics.median(run[key] for run in runs), 3) for key in runs[0]}


def _paired(runs: dict[str, list[dict[str, float]]], kind: str) -> float:
    """Return batches per second against no gate: the median of the ratios within rounds."""
    pairs = zip(runs[kind], runs["none"], strict=True)
    ratios = [mine["batches_per_s"] / none["batches_per_s"] for mine, none in pairs]
    return round(statistics.median(ratios), 4)


def table(result: dict[str, Any]) -> Table:
    grid = figures_table(
        f"gates: medians of {result['rounds']} rounds of {result['seconds']:g} s; "
        f"memory with {result['queries']} queries",
        "gate, batches/s, ÷ none, wait ms, − none, CPU ms/batch, controller ms/batch, "
        "heap MB/query, Python MB/query, started, start s, restarts",
    )
    none = result["gates"]["none"]
    for kind, figures in result["gates"].items():
        grid.add_row(
            kind,
            f"{figures['batches_per_s']:.2f}",
            f"{figures['throughput_ratio']:.3f}",
            f"{figures['wait_ms']:.1f}",
            f"{figures['wait_ms'] - none['wait_ms']:+.1f}",
            f"{figures['cpu_ms']:.0f}",
            f"{figures['controller_cpu_ms']:.2f}",
            f"{figures['heap_mb_per_query']:.2f}",
            f"{figures['python_mb_per_query']:.1f}",
            f"{figures['queries_with_batches']:.0f}/{result['queries']}",
            f"{figures['start_s']:.0f}",
            f"{figures['restarts']:.0f}",
        )
    return grid
