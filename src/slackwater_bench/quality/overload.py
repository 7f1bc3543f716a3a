"""More input than the machine can take: Spark alone, the best fixed rate, and Slackwater."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from rich.table import Table

from slackwater.core.errors import EngineError
from slackwater_bench.comparison import Comparison, Show, Step
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.quality.results import OverloadResult, QualityRun
from slackwater_bench.quality.trial import QualityTrial, QueryPlan
from slackwater_bench.tables import figures_table
from slackwater_bench.trial import run_in_process

SETTLING_S = 10.0  # after the beginning of the overload, that do not count
LAG_LIMIT_S = 2.0
PROBE_RATE, PROBE_ROWS, PROBE_S = 20_000, 4000, 40.0  # rows/s, rows of a micro-batch, seconds
CALM_S = 20.0  # of a tenth of the load first, in which the JVM compiles
SEARCH = (0.36, 0.6)  # parts of the input between which the best fixed rate is looked for
SEARCHES = 3  # each halves the range
FIXED_S = 45.0  # of overload, for a fixed rate


@dataclass(frozen=True, kw_only=True)
class Overload:
    """What the machine is given."""

    seconds: float = option(300.0, "Of overload.", least=20)
    times: float = option(2.0, "Input by what can be processed.", least=0.1)
    references: int = option(50, "What a row costs.", least=1)
    master: str = option("local[2]", "Spark master.")


def measure(overload: Overload, journal: Journal, show: Show) -> OverloadResult:
    """Run all arms, one after another, each in a process of its own."""
    show("what the machine can do")
    capacity = capacity_of(overload.references, overload.master)
    rate = round(overload.times * capacity)

    def step(arm: str, length_s: float) -> Step:
        traffic = f"steps:0={rate // 10},{CALM_S:g}={rate}"
        plan = QueryPlan(name="knn", rate=traffic, references=overload.references)
        seconds = CALM_S + length_s
        trial = QualityTrial(arm=arm, queries=(plan,), seconds=seconds, master=overload.master)
        return Step(trial, {"arm": arm}, f"{rate} rows/s, {arm}")

    head = {"capacity": capacity, "rate": rate, "seconds": overload.seconds}
    comparison = Comparison(head, journal, show, by="arm", tolerant=False)
    whole = [step(arm, overload.seconds) for arm in ("plain", "slackwater")]
    good, bad = SEARCH
    fixed_s = min(overload.seconds, FIXED_S)
    comparison.expect("runs", whole + [step(f"fixed:{good:g}", fixed_s)] * SEARCHES)
    comparison.run("runs", whole)
    for _ in range(SEARCHES):
        part = round((good + bad) / 2, 4)
        found = comparison.run_step("runs", step(f"fixed:{part:g}", fixed_s))
        if figures(cast(QualityRun, found))["lag_s"] <= LAG_LIMIT_S:
            good = part
        else:
            bad = part
    return cast(OverloadResult, comparison.result)


def figures(run: QualityRun) -> dict[str, float]:
    """Return the largest lag after settling, and the accuracy since then."""
    since_s = CALM_S + SETTLING_S
    query = run["queries"]["knn"]
    lags = [lag for at_s, lag in query["lags"] if at_s >= since_s]
    batches = [each for each in query["batches"] if each[0] >= since_s]
    seen = sum(each[2] for each in batches)
    return {
        "lag_s": max(lags, default=0.0),
        "accuracy": sum(each[3] for each in batches) / seen if seen else 0.0,
    }


def rate_errors(run: QualityRun) -> dict[str, float]:
    """Return errors of the source's estimated rate: mean, and 90th percentile of their size."""
    looks = [look for sample in run["samples"] for look in sample["queries"].values()]
    pairs = [(look["rate_estimate"], look["rate"]) for look in looks if look["rate"] > 0]
    return rate_figures([(estimate, rate) for estimate, rate in pairs if estimate is not None])


def rate_figures(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return errors of rates that were estimated, beside those that were.

    >>> rate_figures([(101.0, 100.0), (99.0, 100.0)])
    {'mean': 0.0, 'p90': 0.01, 'looks': 2}
    """
    if not pairs:
        return {}
    errors = np.array([estimated / true - 1 for estimated, true in pairs])
    return {
        "mean": round(float(errors.mean()), 5),
        "p90": round(float(np.quantile(np.abs(errors), 0.9)), 5),
        "looks": len(errors),
    }


def best_fixed(result: OverloadResult) -> str | None:
    """Return the largest fixed rate that does not fall behind."""
    good = [
        arm
        for arm, run in result["runs"].items()
        if arm.startswith("fixed") and figures(run)["lag_s"] <= LAG_LIMIT_S
    ]
    return max(good, key=lambda arm: float(arm.partition(":")[2]), default=None)


def table(result: OverloadResult) -> Table:
    title = f"{result['rate']} rows/s where {result['capacity']:.0f} can be processed"
    grid = figures_table(title, "arm, largest lag s, accuracy, of the best fixed")
    best = best_fixed(result)
    for arm, run in result["runs"].items():
        found = figures(run)
        part = found["accuracy"] / figures(result["runs"][best])["accuracy"] if best else None
        shown = f"{part:.0%}" if part is not None and arm == "slackwater" else ""
        mark = " (best)" if arm == best else ""
        grid.add_row(arm + mark, f"{found['lag_s']:.2f}", f"{found['accuracy']:.1%}", shown)
    grid.caption = rate_line(result["runs"]["slackwater"])
    return grid


def rate_line(run: QualityRun) -> str | None:
    """Say how well the rate of the source was estimated, for a table's foot."""
    errors = rate_errors(run)
    if not errors:
        return None
    mean, p90, looks = errors["mean"], errors["p90"], errors["looks"]
    return f"estimated rate: mean error {mean:+.2%}, 90th percentile {p90:.2%} ({looks} looks)"


def capacity_of(references: int, master: str, cpus: Sequence[int] = ()) -> float:
    """Measure rows per second of Spark alone with too much to do, on some CPUs or all."""
    plan = QueryPlan(
        name="knn", rate=f"{PROBE_RATE}", references=references, rows_per_batch=PROBE_ROWS
    )
    trial = QualityTrial(
        arm="plain", queries=(plan,), seconds=PROBE_S, master=master, cpus=tuple(cpus)
    )
    batches = run_in_process(trial)["queries"]["knn"]["batches"]
    warm = [each for each in batches if each[0] >= PROBE_S / 2]  # by then code is compiled
    if len(warm) < 2:
        raise EngineError("hardly a micro-batch ended within a minute: give fewer references")
    capacity = float(sum(each[3] for each in warm[:-1]) / (warm[-1][0] - warm[0][0]))
    if capacity > 0.8 * PROBE_RATE:
        raise EngineError(f"{PROBE_RATE} rows/s hardly load this machine: give more references")
    return capacity
