"""Runs one trial: starts an engine and its queries, waits, measures, judges what they wrote."""

import os
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from slackwater.common.procfs import CpuMeter, all_processes, descendants, resident_bytes
from slackwater.core.clock import Deadline, RealClock, sleep_until
from slackwater.core.errors import EngineError
from slackwater.statistics.intervals import summary
from slackwater_bench.kafka_traffic import KafkaTraffic, kafka_traffic
from slackwater_bench.trial import Result
from slackwater_bench.versus.engine import Engine
from slackwater_bench.versus.judge import Verdict, judge
from slackwater_bench.versus.results import Results
from slackwater_bench.versus.trial import FLINK, VersusTrial
from slackwater_bench.workloads.base import WindowRows

START_LIMIT_S = 240.0  # for all queries to write their first row
DRAIN_LIMIT_S = 60.0  # how long results of measured windows are waited for after the last of them
_LOOK_S = 0.5


def run(trial: VersusTrial) -> Result:
    """Run the trial. Queries end before their checkpoints go, and these before the broker."""
    with kafka_traffic() as topics:
        with (
            TemporaryDirectory(prefix="slackwater-bench-", ignore_cleanup_errors=True) as folder,
            _engine(trial, Path(folder)) as engine,
        ):
            found = _judged(trial, topics, engine)
        return found | {"late_s": topics.stop()}


def _judged(trial: VersusTrial, topics: KafkaTraffic, engine: Engine) -> Result:
    clock = RealClock()
    # Traffic begins when all queries should be up, so that none starts with a backlog.
    start_s = float(round(clock.now() + 5 + trial.queries))
    workloads = trial.workloads(start_s)
    topics.start({name: workload.feed_options() for name, workload in workloads.items()})
    with closing(Results(topics.address, list(workloads))) as results:
        engine.start(workloads, topics)
        _await_rows(engine, results)
        ready_s = clock.now()
        first_s = max(start_s, ready_s) + trial.warmup_s
        last_s = first_s + trial.seconds
        used = _measure(topics, first_s, last_s)
        between = round(first_s * 1e6), round(last_s * 1e6)
        truth = {name: workload.truth(*between) for name, workload in workloads.items()}
        verdict = _drain(trial, engine, results, truth)
        rows = [row for found in results.rows.values() for row in found]
    return {
        "seconds": trial.seconds,
        "ready_s": round(ready_s - start_s, 2),
        "latency_s": summary(verdict.latencies_s),
        "latencies_s": verdict.latencies_s,
        "windows": {
            "expected": verdict.expected,
            "emitted": verdict.emitted,
            "wrong": verdict.wrong,
        },
        "rows_written": sum(first_s < row.at_s <= last_s for row in rows),
    } | used


def _engine(trial: VersusTrial, folder: Path) -> Engine:
    if trial.arm == FLINK:
        from slackwater_bench.versus.flink_engine import FlinkEngine

        return FlinkEngine(trial, folder)
    from slackwater_bench.versus.spark_engine import SparkEngine

    return SparkEngine(trial, folder)


def _await_rows(engine: Engine, results: Results) -> None:
    """Wait until every query has written a row, as long as none has failed."""
    silent: list[str] = []

    def all_wrote() -> bool:
        engine.check()
        silent[:] = results.silent()
        return not silent

    if not Deadline(START_LIMIT_S).wait_for(all_wrote, every_s=_LOOK_S):
        raise EngineError(f"{len(silent)} queries have written nothing in {START_LIMIT_S:g} s")


def _measure(topics: KafkaTraffic, first_s: float, last_s: float) -> Result:
    """Return at ``last_s`` with what the engine and the traffic have used since ``first_s``."""
    clock, meter = RealClock(), CpuMeter()
    sleep_until(first_s, clock)
    cpu_s, source = meter.read(), topics.cpu_s()
    sleep_until(last_s, clock)
    now = topics.cpu_s()
    processes = descendants(os.getpid(), all_processes())
    return {
        "cpu_s": round(meter.read() - cpu_s, 3),
        "source_cpu_s": {name: round(now[name] - used, 3) for name, used in source.items()},
        "memory_bytes": sum(resident_bytes(pid) for pid in processes),
    }


def _drain(
    trial: VersusTrial, engine: Engine, results: Results, truth: dict[str, WindowRows]
) -> Verdict:
    """Return the verdict when every window is right, or when no more time is left for it."""
    deadline = Deadline(DRAIN_LIMIT_S)
    while True:
        engine.check()
        results.read(_LOOK_S)
        found = Verdict()
        for name, windows in truth.items():
            found.add(judge(windows, results.rows[name], appended=not trial.updates))
        if found.complete or deadline.passed:
            return found
