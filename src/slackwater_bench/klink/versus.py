"""Klink beside Spark's Real-Time Mode: the same topics, update mode, results into Kafka.

A result counts when every count of its window stands in the topic of results as it stays, by the
broker's clock.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rich.table import Table

from slackwater.statistics.intervals import summary
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.journal import Journal
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.options import option
from slackwater_bench.tables import figures_table
from slackwater_bench.trial import Result, Trial

REAL_TIME = "real-time"  # Spark's trigger(realTime=…)
PLAIN = "spark"  # micro-batches, one after another


@dataclass(frozen=True, kw_only=True)
class VersusTrial(Trial):
    """A fleet of Yahoo's windows in one of the ways."""

    runner: ClassVar[str] = "slackwater_bench.klink.versus_run:run"

    arm: str
    queries: int
    seconds: float = option(30.0, "Measured time of a trial.", least=5)
    warmup_s: float = option(15.0, "Seconds before it that do not count.", least=0)
    rate: str = option("1000", "Events/s of each query; steps:… or burst:…")
    target_s: float = option(1.0, "How old results may be: Klink refreshes so often.", least=0.1)
    batch_s: float = option(5.0, "Length of a batch in Real-Time Mode.", least=1)
    seed: int = option(1, "All phases, delays and events follow from it.")

    @property
    def expected_s(self) -> float:
        return self.around_s + self.queries + self.warmup_s + self.seconds

    @property
    def fleet(self) -> PolicyTrial:
        """The same queries as ``ysb`` has."""
        return PolicyTrial("klink", queries=self.queries, rate=self.rate, seed=self.seed)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Which ways, and how many queries."""

    arms: tuple[str, ...] = option(
        (REAL_TIME, "klink", PLAIN), "Comma-separated: real-time, spark, and policies."
    )
    counts: tuple[int, ...] = option((1, 2, 4, 8), "How many queries: 1,2,4.", flags="--queries")
    repeat: int = option(1, "Rounds; arms alternate.", least=1)


def measure(base: VersusTrial, compared: Compared, journal: Journal, show: Show) -> Result:
    """Run every arm with every number of queries."""
    steps = [
        Step(
            replace(base, arm=arm, queries=queries, seed=base.seed + repeat),
            {"arm": arm, "queries": queries, "repeat": repeat},
            f"{arm}, {queries} queries",
        )
        for repeat, arms in turns(compared.arms, compared.repeat)
        for queries in compared.counts
        for arm in arms
    ]
    head = {"rate": base.rate, "target_s": base.target_s, "batch_s": base.batch_s}
    comparison = Comparison(head, journal, show)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return comparison.result


def table(result: Result) -> Table:
    """Return a row for each arm and number of queries, repeats pooled."""
    grid = figures_table(
        f"ysb in update mode over Kafka, {result['rate']} events/s for each query; latency from a "
        "window's end until its counts stand",
        "queries, arm, mean s, p50, p99, windows, wrong, rows written/s, CPU cores",
        names=2,
    )
    runs: Sequence[dict[str, Any]] = result["runs"]
    for queries, arm in dict.fromkeys((run["queries"], run["arm"]) for run in runs):
        mine = [run for run in runs if (run["queries"], run["arm"]) == (queries, arm)]
        grid.add_row(str(queries), arm, *_cells(mine))
    return grid


def _cells(runs: Sequence[dict[str, Any]]) -> Iterator[str]:
    done = [run for run in runs if "error" not in run]
    if not done:
        yield str(runs[0]["error"])
        return
    latency = summary([value for run in done for value in run["latencies_s"]])
    for key in ("mean", "p50", "p99"):
        yield "" if latency[key] is None else f"{latency[key]:.2f}"
    yield f"{sum(run['emitted'] for run in done)}/{sum(run['expected'] for run in done)}"
    yield str(sum(run["wrong"] for run in done))
    seconds = sum(run["seconds"] for run in done)
    yield f"{sum(run['rows_written'] for run in done) / seconds:.0f}"
    yield f"{sum(run['cpu_s'] for run in done) / seconds:.2f}"
