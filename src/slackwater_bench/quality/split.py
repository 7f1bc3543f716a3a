"""Klink over queries that are split between two workers: what halves gain by telling each other.

Each YSB query is two: the first half on one worker, the windows on another, a log between them.
"""

import json
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from rich.table import Table

from slackwater.core.clock import RealClock
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.statistics.intervals import summary
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.quality.fleet_run import FleetRun, section
from slackwater_bench.tables import figures_table
from slackwater_bench.trial import Result, Trial

PIPELINES = "slackwater_bench.workloads.split_ysb"
ARMS = ("local", "forwarding")
STARTING_S = 60.0
WINDOW_S = 3.0


@dataclass(frozen=True, kw_only=True)
class SplitTrial(Trial):
    """Queries split between two workers, under one arm."""

    runner: ClassVar[str] = "slackwater_bench.quality.split:run"
    around_s: ClassVar[float] = 75.0

    arm: str
    queries: int = option(2, "Each on both workers.", least=1)
    seconds: float = option(60.0, "Measured time of a run.", least=3)
    warmup_s: float = option(30.0, "Seconds before it.", least=0)
    rate: int = option(1000, "Events/s of each query.", least=1)
    policy: str = option("klink", "Of both workers.")
    seed: int = 0

    @property
    def expected_s(self) -> float:
        return self.around_s + self.warmup_s + self.seconds


def measure(base: SplitTrial, repeat: int, journal: Journal, show: Show) -> Result:
    """Run both arms by turns; each starts a fleet of processes, so this one may watch it."""
    steps = [
        Step(
            replace(base, arm=arm, seed=10 * number),
            {"arm": arm, "repeat": number},
            f"round {number + 1} of {repeat}, {arm}",
        )
        for number, order in turns(ARMS, repeat)
        for arm in order
    ]
    head = {"queries": base.queries, "rate": base.rate, "policy": base.policy}
    comparison = Comparison(head, journal, show, SplitTrial.run, tolerant=False)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return comparison.result


def run(trial: SplitTrial, clock: Clock = RealClock()) -> Result:
    """Run one arm through `slackwater fleet` and judge its windows."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_s = float(int(clock.now() + STARTING_S))
        plans = [
            {
                "seed": trial.seed + n,
                "start": start_s,
                "rate": f"{trial.rate}",
                "phase": WINDOW_S * n / trial.queries,
            }
            for n in range(trial.queries)
        ]
        run = FleetRun(
            folder, _file(folder, plans, trial.policy, forwarding=trial.arm == "forwarding")
        )
        try:
            from_s = start_s + trial.warmup_s
            while clock.now() < from_s + trial.seconds + 2 * WINDOW_S:
                run.check()
                clock.sleep(0.5)
        finally:
            run.end()
        samples = run.samples(start_s)
        found = [
            _judge(folder / f"out{n}", plan, from_s, trial.seconds) for n, plan in enumerate(plans)
        ]
    latencies = [latency for each, _ in found for latency in each]
    if not latencies:
        raise EngineError("no window came out")
    used = [
        sum(worker["used"] for worker in sample["workers"].values() if worker["used"] is not None)
        for sample in samples
        if sample["at_s"] >= trial.warmup_s
    ]
    return {
        "latency_s": summary(latencies),
        "windows": len(latencies),
        "wrong": sum(wrong for _, wrong in found),
        "cores": sum(used) / max(len(used), 1),
    }


def _file(folder: Path, plans: list[dict[str, Any]], policy: str, forwarding: bool) -> str:
    parts = [f"name = 'split'\npolicy = '{policy}'\nforwarding = {str(forwarding).lower()}\n"]
    parts += [section(f"workers.w{place}", {"cpus": [place], "cores": 16.0}) for place in (0, 1)]
    for number, plan in enumerate(plans):
        between = {"folder": str(folder / f"log{number}"), **plan}
        first = {"query": f"{PIPELINES}:views", "arguments": between, "workers": ["w0"]}
        second = {
            "query": f"{PIPELINES}:counts",
            "arguments": {"out": str(folder / f"out{number}"), **between},
            "workers": ["w1"],
            "reads": [f"views{number}"],
        }
        parts += [section(f"queries.views{number}", first)]
        parts += [section(f"queries.counts{number}", second)]
    return "".join(parts)


def _judge(
    path: Path, plan: dict[str, Any], from_s: float, seconds: float
) -> tuple[list[float], int]:
    """Return latencies of the measured windows, and how many were not right."""
    from slackwater_bench.workloads.split_ysb import workload  # loads Spark

    done: dict[int, float] = {}
    seen: dict[int, Counter[tuple[Any, ...]]] = defaultdict(Counter)
    for line in path.read_text().splitlines() if path.exists() else ():
        entry = json.loads(line)
        for end_us, *row in entry["rows"]:
            done[end_us] = entry["at_s"]
            seen[end_us][tuple(row)] += 1
    truth = workload(**plan).truth(round(from_s * 1e6), round((from_s + seconds) * 1e6))
    wrong = sum(seen.get(end_us) != rows for end_us, rows in truth.items())
    return [done[end_us] - end_us / 1e6 for end_us in truth if end_us in done], wrong


def table(result: dict[str, Any]) -> Table:
    title = f"{result['queries']} queries on two workers, {result['policy']}"
    grid = figures_table(title, "arm, mean s, p50, p99, windows, wrong or missing, cores")
    for run in result["runs"]:
        latency = run["latency_s"]
        cells = [f"{latency[key]:.2f}" for key in ("mean", "p50", "p99")]
        counts = [str(run["windows"]), str(run["wrong"]), f"{run['cores']:.2f}"]
        grid.add_row(run["arm"], *cells, *counts)
    return grid
