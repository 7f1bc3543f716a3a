"""A query that comes back after an hour: what waits at a source of Spark's own, in a small heap.

Nearly every event is a group of its own, so what is read fills memory until its window closes.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

from rich.table import Table

from slackwater_bench.comparison import Comparison, Show, Step
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.trial import Result, Trial

SOURCES = ("files", "rate", "kafka")


@dataclass(frozen=True, kw_only=True)
class BacklogTrial(Trial):
    """One query on one source under one policy."""

    runner: ClassVar[str] = "slackwater_bench.klink.backlog_run:run"
    arm_field: ClassVar[str] = "policy"

    policy: str
    source: str = "files"
    backlog_s: float = option(3600.0, "Seconds of events that wait at the start.", least=60)
    rate: int = option(700, "Events/s.", least=1)
    heap: str = option("512m", "Of Spark's driver.")
    seconds: float = option(600.0, "After which a run is given up.", least=10)


@dataclass(frozen=True, kw_only=True)
class Compared:
    """Which policies read which sources."""

    policies: tuple[str, ...] = option(("spark", "klink"), "Comma-separated.")
    sources: tuple[str, ...] = option(
        SOURCES, "Comma-separated: files, rate, kafka (starts a broker)."
    )


def measure(base: BacklogTrial, compared: Compared, journal: Journal, show: Show) -> Result:
    """Run every policy on every source."""
    steps = [
        Step(
            replace(base, policy=policy, source=source),
            {"policy": policy, "source": source},
            f"{policy}, {source}",
        )
        for source in compared.sources
        for policy in compared.policies
    ]
    head = {"backlog_s": base.backlog_s, "rate": base.rate, "heap": base.heap}
    comparison = Comparison(head, journal, show)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return comparison.result


def table(result: Result) -> Table:
    """Return what came of each."""
    found = Table("source", "policy", "batches", "rows of the largest", "s", "windows", "wrong")
    for run in result["runs"]:
        if "error" in run:
            found.add_row(run["source"], run["policy"], run["error"])
            continue
        names = ("source", "policy", "batches", "largest_rows", "caught_up_s", "windows", "wrong")
        found.add_row(*(str(run[name]) for name in names))
    return found
