"""Figures of arms: the runs of a sampler on a workload, put together."""

import math
from dataclasses import dataclass
from typing import Any, Literal, TypedDict

import numpy as np
from rich.table import Table

from slackwater_bench.tables import figures_table


class AionRun(TypedDict, total=False):
    """One trial as it goes to JSON; one that failed has ``error`` instead of figures."""

    workload: str
    setting: str
    rate: str
    sampler: str
    repeat: int
    windows: dict[str, int]
    latencies_s: list[float]
    waits_s: list[float]
    rests_s: list[float]
    sampling_rate: dict[str, float]
    errors: list[float]
    unbounded_errors: list[float]
    missing_groups: int
    intervals: int
    covered: int
    cpu_s: float
    planner_cpu_s: float
    trial: dict[str, Any]  # of AionTrial
    error: str


class AionResult(TypedDict):
    """All trials of a comparison."""

    runs: list[AionRun]


Key = tuple[str, str, str, str]  # workload, setting, rate, sampler
BASE = "k-slack"  # what others are compared with: no sampling, waits for all


@dataclass(frozen=True)
class Figures:
    """One arm over all its repeats."""

    latencies_s: list[float]
    waits_s: list[float]
    rests_s: list[float]  # of the windows whose wait is known
    rates: list[float]
    errors: list[float]  # of the rows that promise a bound
    unbounded: int  # rows that do not
    covered: float  # share of the intervals that hold the truth; nan: no intervals
    missing_groups: int
    cpu_s: float
    planner_cpu_s: float
    windows: tuple[int, int]  # emitted, expected

    @property
    def mean_s(self) -> float:
        return float(np.mean(self.latencies_s)) if self.latencies_s else math.nan

    @property
    def wait_s(self) -> float:
        return float(np.mean(self.waits_s)) if self.waits_s else math.nan

    @property
    def rest_s(self) -> float:
        return float(np.mean(self.rests_s)) if self.rests_s else math.nan

    def quantile_s(self, level: float) -> float:
        return float(np.quantile(self.latencies_s, level)) if self.latencies_s else math.nan

    def within(self, error: float) -> float:
        """Return the share of rows that keep an error, of those that promise it."""
        return float(np.mean(np.array(self.errors) <= error)) if self.errors else math.nan


def figures(result: AionResult) -> dict[Key, Figures]:
    """Put the runs of each arm together, in their order."""
    runs: dict[Key, list[AionRun]] = {}
    for run in result["runs"]:
        if "error" not in run:
            key = (run["workload"], run["setting"], run["rate"], run["sampler"])
            runs.setdefault(key, []).append(run)
    return {key: _together(found) for key, found in runs.items()}


def _together(runs: list[AionRun]) -> Figures:
    def joined(name: Literal["latencies_s", "waits_s", "rests_s", "errors"]) -> list[float]:
        return [value for run in runs for value in run[name]]

    intervals = sum(run["intervals"] for run in runs)
    return Figures(
        latencies_s=joined("latencies_s"),
        waits_s=joined("waits_s"),
        rests_s=joined("rests_s"),
        rates=[run["sampling_rate"]["mean"] for run in runs],
        errors=joined("errors"),
        unbounded=sum(len(run["unbounded_errors"]) for run in runs),
        covered=sum(run["covered"] for run in runs) / intervals if intervals else math.nan,
        missing_groups=sum(run["missing_groups"] for run in runs),
        cpu_s=sum(run["cpu_s"] for run in runs),
        planner_cpu_s=sum(run["planner_cpu_s"] for run in runs),
        windows=(
            sum(run["windows"]["emitted"] for run in runs),
            sum(run["windows"]["expected"] for run in runs),
        ),
    )


def table(result: AionResult, error: float) -> Table:
    """Return the table for the terminal."""
    shown = figures_table(
        "latency from a window's end to its result; waiting and the rest apart",
        f"workload, setting, events/s, sampler, mean s, wait, rest, p99, ÷ {BASE}, sampled, "
        f"error ≤ {error:.0%}, promised, covered, windows, CPU s, planner",
        names=4,
    )
    found = figures(result)
    for key, arm in found.items():
        base = found.get((*key[:3], BASE))
        ratio = arm.mean_s / base.mean_s if base else math.nan
        rows = len(arm.errors) + arm.unbounded
        shown.add_row(
            *key,
            f"{arm.mean_s:.2f}",
            f"{arm.wait_s:.2f}",
            f"{arm.rest_s:.2f}",
            f"{arm.quantile_s(0.99):.2f}",
            f"{ratio:.2f}",
            f"{np.mean(arm.rates):.0%}",
            f"{arm.within(error):.1%}",
            f"{len(arm.errors) / max(rows, 1):.1%}",
            "" if math.isnan(arm.covered) else f"{arm.covered:.1%}",
            f"{arm.windows[0]}/{arm.windows[1]}",
            f"{arm.cpu_s:.1f}",
            f"{arm.planner_cpu_s / max(arm.cpu_s, 1e-9):.2%}",
        )
    return shown
