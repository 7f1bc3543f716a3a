"""Compares the arms: each once in every repeat, for every number of queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from rich.table import Table

from slackwater.statistics.intervals import summary
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.tables import figures_table
from slackwater_bench.trial import Result
from slackwater_bench.versus.trial import ARMS, FLINK, KLINK, REAL_TIME, VersusTrial


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Which ways, and how many queries."""

    arms: tuple[str, ...] = option(
        (KLINK, REAL_TIME, FLINK), f"Comma-separated, of {', '.join(ARMS)}."
    )
    counts: tuple[int, ...] = option((1, 2, 4, 8), "How many queries: 1,2,4.", flags="--queries")
    repeat: int = option(1, "Rounds; arms alternate.", least=1)


def measure(base: VersusTrial, compared: Compared, journal: Journal, show: Show) -> Result:
    """Run every arm with every number of queries; another seed in each repeat."""
    steps = [
        Step(
            replace(base, arm=arm, queries=queries, seed=base.seed + repeat),
            {"arm": arm, "queries": queries, "repeat": repeat},
            f"{arm}, {queries} queries, repeat {repeat + 1}",
        )
        for repeat, arms in turns(compared.arms, compared.repeat)
        for queries in compared.counts
        for arm in arms
    ]
    head = {"rate": base.rate, "window_s": base.window_s, "checkpoint_s": base.checkpoint_s}
    comparison = Comparison(head, journal, show)
    comparison.refuse_others("runs", steps)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return comparison.result


def table(result: Result) -> Table:
    """Return a row for each arm and number of queries, repeats pooled."""
    grid = figures_table(
        f"windows of {result['window_s']:g} s over Kafka, {result['rate']} events/s for each "
        "query; latency from a window's end until its counts stand in the topic of results",
        "queries, arm, mean s, p50, p99, windows, wrong, rows written/s, CPU cores, memory MB",
        names=2,
    )
    runs: Sequence[dict[str, Any]] = result["runs"]
    for queries, arm in dict.fromkeys((run["queries"], run["arm"]) for run in runs):
        mine = [run for run in runs if (run["queries"], run["arm"]) == (queries, arm)]
        done = [run for run in mine if "error" not in run]
        grid.add_row(str(queries), arm, *(_cells(done) if done else ["failed"]))
    return grid


def _cells(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    latency = summary([value for run in runs for value in run["latencies_s"]])
    for key in ("mean", "p50", "p99"):
        yield "" if latency[key] is None else f"{latency[key]:.2f}"
    windows = [run["windows"] for run in runs]
    yield f"{sum(w['emitted'] for w in windows)}/{sum(w['expected'] for w in windows)}"
    yield str(sum(w["wrong"] for w in windows))
    seconds = sum(run["seconds"] for run in runs)
    yield f"{sum(run['rows_written'] for run in runs) / seconds:.0f}"
    yield f"{sum(run['cpu_s'] for run in runs) / seconds:.2f}"
    yield f"{max(run['memory_bytes'] for run in runs) / 1e6:.0f}"
