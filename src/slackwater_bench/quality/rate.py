"""How well the rate of a source is known: the change of the lag plus the consumption, over Kafka.

One query reads a topic of a real broker once a second, at first with all that has come, then with a
limit that leaves it behind. What it reports gives the estimate that decisions on overload go by.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from rich.table import Table

from slackwater.core.errors import UsageError
from slackwater.traffic import Rate, Traffic, parse_rate
from slackwater_bench.comparison import Comparison, Show, Step
from slackwater_bench.journal import Journal
from slackwater_bench.options import option
from slackwater_bench.tables import figures_table
from slackwater_bench.trial import Result, Trial

KEEPS_UP, FALLS_BEHIND = ARMS = ("keeps up", "falls behind")
SETTLED_S = 5.0  # after a step of the rate, or the start
PUBLISHED = "0.4 % ± 6.2 %"  # of the paper's estimate, in its own evaluation

Look = tuple[float, float]  # when, and the rate that was estimated


@dataclass(frozen=True, kw_only=True)
class RateTrial(Trial):
    """One query on one topic."""

    runner: ClassVar[str] = "slackwater_bench.quality.rate_run:run"

    arm: str
    rate: str = option(
        "steps:0=2000,20=4000,40=1000,60=3000", "Events/s; steps:… or burst:…, in seconds."
    )
    seconds: float = option(80.0, "Measured time of a trial.", least=10)
    gaps: str = option("exponential", "How evenly events follow each other: constant, gamma:2.")
    delays: str = option("uniform:0:300ms", "Network delays of events.")
    partitions: int = option(2, "Of the topic.", least=1)
    seed: int = option(1, "All events follow from it.")

    def __post_init__(self) -> None:
        self.traffic(0.0)
        if min(parse_rate(self.rate).per_second) == 0:
            raise UsageError("--rate must be above 0 throughout: errors are in parts of it")

    def traffic(self, start_s: float) -> Traffic:
        """Return the events of the topic."""
        return Traffic(
            start_s=start_s,
            rate=self.rate,
            gaps=self.gaps,
            delays=self.delays,
            partitions=self.partitions,
            seed=self.seed,
        )


def measure(base: RateTrial, journal: Journal, show: Show) -> Result:
    """Run both arms."""
    steps = [Step(replace(base, arm=arm), {"arm": arm}, f"a query that {arm}") for arm in ARMS]
    head = {"rate": base.rate, "gaps": base.gaps, "published": PUBLISHED}
    comparison = Comparison(head, journal, show, by="arm")
    comparison.expect("runs", steps)
    comparison.run("runs", steps)
    return comparison.result


def judged(looks: Sequence[Look], rate: Rate, seconds: float) -> dict[str, Any]:
    """Compare estimates with the rates that there were.

    >>> found = judged([(6.0, 101.0), (7.0, 99.0), (8.5, 150.0)], parse_rate("100"), 8.0)
    >>> found["settled"]
    {'mean': 0.0, 'std': 0.01, 'p90': 0.01, 'looks': 2}
    """
    inside = [look for look in looks if look[0] < seconds]
    settled = [look for look in inside if _is_settled(look[0], rate)]
    return {"all": _figures(inside, rate), "settled": _figures(settled, rate)}


def _is_settled(at_s: float, rate: Rate) -> bool:
    before = rate.at(np.linspace(max(0.0, at_s - SETTLED_S), at_s, 20))
    return at_s >= SETTLED_S and bool((before == before[-1]).all())


def _figures(looks: Sequence[Look], rate: Rate) -> dict[str, float]:
    if not looks:
        return {"looks": 0}
    times, estimates = np.array(looks).T
    errors = estimates / rate.at(times) - 1
    return {
        "mean": round(float(errors.mean()), 5),
        "std": round(float(errors.std()), 5),
        "p90": round(float(np.quantile(np.abs(errors), 0.9)), 5),
        "looks": len(looks),
    }


def table(result: Result) -> Table:
    """Return a row for each arm."""
    grid = figures_table(
        f"estimated rate of a topic with {result['rate']} events/s; published: {PUBLISHED}",
        "query, estimates, error %, 90th percentile %, lag rows",
        f"error % from {SETTLED_S:g} s after a step on",
    )
    for arm, run in result["runs"].items():
        grid.add_row(arm, *([run["error"]] if "error" in run else _cells(run)))
    return grid


def _cells(run: Result) -> Iterator[str]:
    errors, settled = run["errors"]["all"], run["errors"]["settled"]
    yield str(errors["looks"])
    yield _spread(errors)
    yield f"{errors['p90']:.1%}" if errors["looks"] else ""
    yield f"{run['largest_lag_rows']:.0f}"
    yield _spread(settled)


def _spread(errors: dict[str, float]) -> str:
    return f"{errors['mean']:+.1%} ± {errors['std']:.1%}" if errors["looks"] else ""
