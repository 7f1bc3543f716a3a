"""Compares policies: trials in turn, each policy once in every repeat, in alternating order."""

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from slackwater import policies
from slackwater.bench.statistics import summary
from slackwater.bench.trial import DRAIN_LIMIT_S, START_LIMIT_S, Trial
from slackwater.core.errors import EngineError

# Arms that are not a policy with our session: Spark itself, as it comes and as an expert tunes it.
RIVALS = {"spark": ("spark", "stock"), "spark-tuned": ("spark", "tuned")}

_KEYS = ("latency_s", "windows", "events", "throughput_eps", "batches", "cpu_s", "controller_cpu_s")


def arms(names: Sequence[str], base: Trial) -> list[tuple[str, Trial]]:
    """A trial for each name; unknown policies are refused before anything runs."""
    found = []
    for name in names:
        policy, profile = RIVALS.get(name, (name, base.profile))
        policies.load(policy)
        found.append((name, replace(base, policy=policy, profile=profile)))
    return found


def compare(
    chosen: Sequence[tuple[str, Trial]],
    repeats: int,
    on_trial: Callable[[str, int], None] = lambda name, repeat: None,
) -> dict[str, Any]:
    """Run everything; the result is what ``--json`` writes (docs/bench-json.md)."""
    base = chosen[0][1]
    runs = []
    for repeat in range(repeats):
        order = chosen if repeat % 2 == 0 else list(reversed(chosen))
        for name, trial in order:
            on_trial(name, repeat)
            # Another seed in each repeat, the same for all arms of it.
            result = run_apart(replace(trial, seed=base.seed + repeat))
            extra = {key: result[key] for key in ("latencies_s", "watermark_delay_s", "drained")}
            run = {"policy": name, "repeat": repeat} | {key: result[key] for key in _KEYS}
            runs.append(run | extra)
    return {
        "workload": base.workload,
        "queries": base.queries,
        "rate": float(base.rate) if base.rate.replace(".", "").isdigit() else base.rate,
        "window_s": base.window_s,
        "settings": asdict(base),
        "runs": runs,
    }


def run_apart(trial: Trial) -> dict[str, Any]:
    """One trial in a process of its own."""
    limit_s = 120 + START_LIMIT_S + trial.warmup_s + trial.seconds + DRAIN_LIMIT_S
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "slackwater.bench.trial", str(out)]
        with (Path(folder) / "log").open("w+") as log:
            try:
                done = subprocess.run(
                    command,
                    input=json.dumps(asdict(trial)),
                    text=True,
                    stdout=log,
                    stderr=log,
                    timeout=limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise EngineError(
                    f"a trial of {trial.policy} did not end in {limit_s:.0f} s"
                ) from None
            if done.returncode != 0 or not out.exists():
                log.seek(0)
                lines = [line.strip() for line in log if line.strip()]
                reason = lines[-1] if lines else f"status {done.returncode}"
                raise EngineError(f"a trial of {trial.policy} failed: {reason}")
        result: dict[str, Any] = json.loads(out.read_text())
        return result


def table(result: dict[str, Any]) -> Table:
    """All repeats of an arm pooled, the first arm as the reference."""
    grid = Table(
        title=f"{result['workload']}: {result['queries']} queries, {result['rate']} events/s each, "
        f"windows of {result['window_s']:g} s; latency from a window's end to its result",
        title_justify="left",
    )
    for column in (
        "policy", "mean s", "p50", "p90", "p99", "max", "mean ÷ first", "p99 ÷ first",
        "windows", "wrong", "events/s", "batches", "CPU s", "controller CPU s",
    ):  # fmt: skip
        grid.add_column(column, justify="left" if column == "policy" else "right")
    names = list(dict.fromkeys(run["policy"] for run in result["runs"]))
    first: dict[str, float | None] = {}
    for name in names:
        mine = [run for run in result["runs"] if run["policy"] == name]
        figures = summary([value for run in mine for value in run["latencies_s"]])
        first = first or figures
        grid.add_row(*_cells(name, mine, figures, first))
    return grid


def _dig(run: dict[str, Any], path: Sequence[str]) -> float:
    found: Any = run
    for key in path:
        found = found[key]
    return float(found)


def _cells(
    name: str,
    runs: list[dict[str, Any]],
    figures: dict[str, float | None],
    first: dict[str, float | None],
) -> list[str]:
    def total(*path: str) -> float:
        return sum(_dig(run, path) for run in runs)

    def ratio(key: str) -> str:
        mine, reference = figures[key], first[key]
        return f"{mine / reference:.2f}" if mine is not None and reference else ""

    latencies = [f"{figures[k]:.2f}" if figures[k] is not None else "" for k in figures]
    emitted, expected = total("windows", "emitted"), total("windows", "expected")
    return [
        name,
        *latencies,
        ratio("mean"),
        ratio("p99"),
        f"{emitted:.0f}/{expected:.0f}",
        f"{total('windows', 'wrong'):.0f}",
        f"{total('throughput_eps') / len(runs):.0f}",
        f"{total('batches') / len(runs):.0f}",
        f"{total('cpu_s') / len(runs):.1f}",
        f"{total('controller_cpu_s') / len(runs):.2f}",
    ]
