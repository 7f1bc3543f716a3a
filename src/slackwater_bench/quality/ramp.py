"""A rate that rises and rises: lag, throughput and latency of Spark alone and of Slackwater."""

from dataclasses import dataclass
from typing import cast

from rich.table import Table

from slackwater_bench.comparison import Comparison, Show, Step
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.quality.overload import capacity_of, rate_line
from slackwater_bench.quality.results import RampResult
from slackwater_bench.quality.trial import QualityTrial, QueryPlan
from slackwater_bench.tables import figures_table

LEVELS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 2.5, 3.0)  # of what can be processed
ARMS = ("plain", "slackwater")


@dataclass(frozen=True, kw_only=True)
class Ramp:
    """How the rate rises."""

    step_s: float = option(20.0, "Seconds of each level of load.", least=5)
    references: int = option(50, "What a row costs.", least=1)
    master: str = option("local[2]", "Spark master.")


def measure(ramp: Ramp, journal: Journal, show: Show) -> RampResult:
    """Run each level for so long, one after another, in both arms."""
    show("what the machine can do")
    capacity = capacity_of(ramp.references, ramp.master)
    levels = [f"{place * ramp.step_s:g}={capacity * at:.0f}" for place, at in enumerate(LEVELS)]
    plan = QueryPlan(name="knn", rate="steps:" + ",".join(levels), references=ramp.references)
    seconds = ramp.step_s * len(LEVELS)
    steps = [
        Step(
            QualityTrial(arm=arm, queries=(plan,), seconds=seconds, master=ramp.master),
            {"arm": arm},
            f"up to {capacity * LEVELS[-1]:.0f} rows/s, {arm}",
        )
        for arm in ARMS
    ]
    head = {"capacity": capacity, "step_s": ramp.step_s}
    comparison = Comparison(head, journal, show, by="arm", tolerant=False)
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return cast(RampResult, comparison.result)


def figures(result: RampResult, arm: str) -> list[dict[str, float]]:
    """Return largest lag, rows a second, accuracy, mean time from row to result of each level."""
    query, step_s = result["runs"][arm]["queries"]["knn"], result["step_s"]
    found = []
    for place, level in enumerate(LEVELS):
        low, high = place * step_s, (place + 1) * step_s
        lags = [lag for at_s, lag in query["lags"] if low <= at_s < high]
        inside = [
            (batch, lag)
            for batch, (_, lag) in zip(query["batches"], query["lags"], strict=False)
            if low <= batch[0] < high
        ]
        seen = sum(batch[2] for batch, _ in inside)
        kept = sum(batch[3] for batch, _ in inside)
        # Rows of a batch waited half of what the oldest did, and then for the batch.
        latencies = [lag / 2 + batch[1] for batch, lag in inside]
        found.append(
            {
                "level": level,
                "lag_s": max(lags, default=float("nan")),
                "rows_per_s": kept / step_s,
                "accuracy": kept / seen if seen else float("nan"),
                "latency_s": sum(latencies) / len(latencies) if latencies else float("nan"),
            }
        )
    return found


def table(result: RampResult) -> Table:
    title = f"rising rate; {result['capacity']:.0f} rows/s can be processed"
    forms = {"lag_s": ".1f", "rows_per_s": ".0f", "accuracy": ".0%", "latency_s": ".1f"}
    shown = ("lag s", "rows/s", "accuracy", "latency s")
    headings = (f"{arm} {column}" for arm in ARMS for column in shown)
    grid = figures_table(title, "load", *headings, names=0)
    for both in zip(*(figures(result, arm) for arm in ARMS), strict=True):
        cells = [format(each[key], form) for each in both for key, form in forms.items()]
        grid.add_row(f"{both[0]['level']:g}", *cells)
    grid.caption = rate_line(result["runs"]["slackwater"])
    return grid
