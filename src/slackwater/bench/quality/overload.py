"""More input than the machine can take: Spark alone, the best fixed rate, and Slackwater."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from rich.table import Table

from slackwater.bench.apart import run_in_process
from slackwater.bench.quality.trial import QualityTrial, QueryPlan
from slackwater.core.errors import EngineError

MODULE = "slackwater.bench.quality.trial"
SETTLING_S = 10.0  # after the beginning of the overload, that do not count
LAG_LIMIT_S = 2.0
PROBE_RATE = 20_000
CALM_S = 20.0  # of a tenth of the load first, in which the JVM compiles
SEARCH = (0.3, 0.4, 0.5, 0.6, 0.7)  # parts of the input that are tried as fixed rates

Show = Callable[[str], None]


def measure(
    seconds: float, times: float, references: int, master: str, show: Show
) -> dict[str, Any]:
    """All arms, one after another, each in a process of its own.

    Parameters
    ----------
    seconds
        Of overload.
    times
        Input as a multiple of what the machine can do.
    """
    show("what the machine can do")
    capacity = capacity_of(references, master)
    rate = round(times * capacity)
    traffic = f"steps:0={rate // 10},{CALM_S:g}={rate}"
    runs = {}
    for arm in ("plain", "slackwater", *(f"fixed:{part}" for part in SEARCH)):
        show(f"{rate} rows/s, {arm}")
        length_s = seconds if not arm.startswith("fixed") else min(seconds, 60.0)
        trial = QualityTrial(
            arm=arm,
            queries=[asdict(QueryPlan(name="knn", rate=traffic, references=references))],
            seconds=CALM_S + length_s,
            master=master,
        )
        runs[arm] = run_trial(trial)
        if arm.startswith("fixed") and figures(runs[arm])["lag_s"] > LAG_LIMIT_S:
            break  # larger parts fall behind all the more
    return {"capacity": capacity, "rate": rate, "seconds": seconds, "runs": runs}


def figures(run: dict[str, Any]) -> dict[str, float]:
    """The largest lag after settling, and the accuracy since then."""
    since_s = CALM_S + SETTLING_S
    query = run["queries"]["knn"]
    lags = [lag for at_s, lag in query["lags"] if at_s >= since_s]
    batches = [each for each in query["batches"] if each[0] >= since_s]
    seen = sum(each[2] for each in batches)
    return {
        "lag_s": max(lags, default=0.0),
        "accuracy": sum(each[3] for each in batches) / seen if seen else 0.0,
    }


def best_fixed(result: dict[str, Any]) -> str | None:
    """The largest fixed rate that does not fall behind."""
    good = [
        arm
        for arm, run in result["runs"].items()
        if arm.startswith("fixed") and figures(run)["lag_s"] <= LAG_LIMIT_S
    ]
    return max(good, key=lambda arm: float(arm.partition(":")[2]), default=None)


def table(result: dict[str, Any]) -> Table:
    title = f"{result['rate']} rows/s where {result['capacity']:.0f} can be processed"
    grid = Table(title=title, title_justify="left")
    for column in ("arm", "largest lag s", "accuracy", "of the best fixed"):
        grid.add_column(column, justify="left" if column == "arm" else "right")
    best = best_fixed(result)
    for arm, run in result["runs"].items():
        found = figures(run)
        part = found["accuracy"] / figures(result["runs"][best])["accuracy"] if best else None
        shown = f"{part:.0%}" if part is not None and arm == "slackwater" else ""
        mark = " (best)" if arm == best else ""
        grid.add_row(arm + mark, f"{found['lag_s']:.2f}", f"{found['accuracy']:.1%}", shown)
    return grid


def capacity_of(references: int, master: str, cpus: Sequence[int] = ()) -> float:
    """Rows per second of Spark alone with always more to do than it can, on some CPUs or all."""
    plan = QueryPlan(name="knn", rate=f"{PROBE_RATE}", references=references)
    trial = QualityTrial(
        arm="plain", queries=[asdict(plan)], seconds=60, master=master, cpus=list(cpus)
    )
    run = run_trial(trial)
    batches = run["queries"]["knn"]["batches"]
    if len(batches) < 3:
        raise EngineError("hardly a micro-batch ended within a minute: give fewer references")
    late = sorted(batches, key=lambda each: each[1])[-2:]  # the longest: what rows cost
    rows, took_s = sum(each[3] for each in late), sum(each[1] for each in late)
    capacity = float(rows / took_s)
    if capacity > 0.8 * PROBE_RATE:
        raise EngineError(f"{PROBE_RATE} rows/s hardly load this machine: give more references")
    return capacity


def run_trial(trial: QualityTrial) -> dict[str, Any]:
    limit_s = 300 + trial.seconds
    return run_in_process(MODULE, asdict(trial), f"a trial of {trial.arm}", limit_s)
