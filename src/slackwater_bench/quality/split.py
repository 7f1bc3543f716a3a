"""Klink over queries that are split between two workers: what halves gain by telling each other.

Each YSB query is two: the first half on one worker, the windows on another, a log between them.
"""

import json
import tempfile
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from rich.table import Table

from slackwater.core.errors import EngineError
from slackwater.statistics.intervals import summary
from slackwater_bench.quality.fleet_run import FleetRun, section
from slackwater_bench.quality.scenarios import Show
from slackwater_bench.workloads.split_ysb import workload

PIPELINES = "slackwater_bench.workloads.split_ysb"
ARMS = ("local", "forwarding")
STARTING_S = 60.0
WINDOW_S = 3.0


def measure(
    queries: int, seconds: float, warmup_s: float, rate: int, policy: str, repeat: int, show: Show
) -> dict[str, Any]:
    """Both arms by turns."""
    runs: list[dict[str, Any]] = []
    for number in range(repeat):
        for arm in ARMS:
            show(f"round {number + 1} of {repeat}: {arm}")
            found = _run(arm, queries, seconds, warmup_s, rate, policy, seed=10 * number)
            runs.append({"arm": arm, "repeat": number, **found})
    return {"queries": queries, "rate": rate, "policy": policy, "runs": runs}


def _run(
    arm: str, queries: int, seconds: float, warmup_s: float, rate: int, policy: str, seed: int
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_s = float(int(time.time() + STARTING_S))
        plans = [
            {"seed": seed + n, "start": start_s, "rate": f"{rate}", "phase": WINDOW_S * n / queries}
            for n in range(queries)
        ]
        run = FleetRun(folder, _file(folder, plans, policy, forwarding=arm == "forwarding"))
        try:
            from_s = start_s + warmup_s
            while time.time() < from_s + seconds + 2 * WINDOW_S:
                run.check()
                time.sleep(0.5)
        finally:
            run.end()
        samples = run.samples(start_s)
        found = [_judge(folder / f"out{n}", plan, from_s, seconds) for n, plan in enumerate(plans)]
    latencies = [latency for each, _ in found for latency in each]
    if not latencies:
        raise EngineError("no window came out")
    used = [
        sum(worker["used"] for worker in sample["workers"].values() if worker["used"] is not None)
        for sample in samples
        if sample["at_s"] >= warmup_s
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
    """Latencies of the windows that ended in the measured time, and how many were not right."""
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
    grid = Table(title=title, title_justify="left")
    for column in ("arm", "mean s", "p50", "p99", "windows", "wrong or missing", "cores"):
        grid.add_column(column, justify="left" if column == "arm" else "right")
    for run in result["runs"]:
        latency = run["latency_s"]
        cells = [f"{latency[key]:.2f}" for key in ("mean", "p50", "p99")]
        counts = [str(run["windows"]), str(run["wrong"]), f"{run['cores']:.2f}"]
        grid.add_row(run["arm"], *cells, *counts)
    return grid
