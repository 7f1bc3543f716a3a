"""Figures of a run: each arm's, and against the operating system's default."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

from rich.table import Table

from slackwater.statistics.intervals import Interval, mean_interval, ratio_interval
from slackwater_bench.lachesis.settings import OS
from slackwater_bench.tables import figures_table

# What is measured, as it is called, how it is written, and which policy is after it.
KINDS: dict[str, tuple[str, str, str | None]] = {
    "spread": ("spread of queues", ".0f", "queue-size"),
    "middle": ("between quartiles", ".0f", "queue-size"),
    "queued": ("rows queued", ".0f", None),
    "oldest_s": ("oldest row, s", ".2f", "fcfs"),
    "latency_s": ("mean latency, s", ".2f", "highest-rate"),
    "in": ("rows in / s", ".0f", None),
    "out": ("rows out / s", ".0f", None),
}


class EngineFigures(TypedDict):
    """What was seen of one engine in one slice, as it goes to JSON; lists are by look."""

    spread: list[float]
    middle: list[float]
    queued: list[float]
    oldest_s: list[float]
    latency_s: list[float]
    sizes: list[float]
    rows_per_s: dict[str, float]
    cores: float  # of operators
    looks: int


class SliceResult(TypedDict):
    """One arm in one round."""

    arm: str
    round: int
    engines: dict[str, EngineFigures]
    middleware: dict[str, Any]  # its status; empty where nothing is steered


class LachesisResult(TypedDict):
    """All slices of a run."""

    settings: dict[str, Any]  # of LachesisSettings
    runs: list[SliceResult]


@dataclass(frozen=True)
class Arm:
    """All that was seen of one engine under one arm."""

    engine: str
    name: str
    rounds: list[EngineFigures]  # one for each slice
    shares: list[float]  # CPU of the middleware, of one core

    def values(self, kind: str) -> list[list[float]]:
        """Return one list for each round."""
        if kind in ("in", "out"):
            return [[each["rows_per_s"][kind]] for each in self.rounds]
        return [each[kind] for each in self.rounds]  # type: ignore[literal-required]

    def interval(self, kind: str) -> Interval:
        return mean_interval(self.values(kind))

    @property
    def sizes(self) -> list[float]:
        return [size for each in self.rounds for size in each["sizes"]]

    @property
    def machine_share(self) -> float | None:
        """CPU of the middleware, of the whole machine."""
        if not self.shares:
            return None
        return sum(self.shares) / len(self.shares) / (os.cpu_count() or 1)


def arms_of(result: LachesisResult) -> list[Arm]:
    """Return the arms by engine, then in the order of the first round."""
    runs = result["runs"]
    engines = list(runs[0]["engines"]) if runs else []
    names = list(dict.fromkeys(run["arm"] for run in runs))
    found = []
    for engine in engines:
        for name in names:
            mine = sorted((r for r in runs if r["arm"] == name), key=lambda run: run["round"])
            shares = [r["middleware"]["cpu_share"] for r in mine if r["middleware"]]
            found.append(Arm(engine, name, [r["engines"][engine] for r in mine], shares))
    return found


def against_default(arm: Arm, arms: Sequence[Arm], kind: str) -> Interval | None:
    """Return the arm's mean ÷ that of the default, rounds paired."""
    default = next((a for a in arms if a.engine == arm.engine and a.name == OS), None)
    if default is None or arm.name == OS:
        return None
    mine, theirs = arm.values(kind), default.values(kind)
    rounds = min(len(mine), len(theirs))
    return ratio_interval(mine[:rounds], theirs[:rounds])


def table(result: LachesisResult) -> Table:
    """Return means with 95 % intervals, and ratios to the default; a policy's goal is marked."""
    title = "through the kernel: mean [95 % interval]; × the default; * its goal"
    kinds = (name for name, _, _ in KINDS.values())
    found = figures_table(title, "engine, arm", *kinds, "middleware", names=2)
    arms = arms_of(result)
    for arm in arms:
        cells = [arm.engine, arm.name]
        for kind, (_, form, goal) in KINDS.items():
            cells.append(_cell(arm.interval(kind), against_default(arm, arms, kind), form))
            if goal == arm.name:
                cells[-1] += " *"
        share = arm.machine_share
        found.add_row(*cells, "" if share is None else f"{share:.2%} CPU")
    return found


def _cell(value: Interval, ratio: Interval | None, form: str) -> str:
    text = format(value.estimate, form)
    if value.known:
        text += f" [{value.low:{form}}, {value.high:{form}}]"
    if ratio is not None and ratio.estimate == ratio.estimate:
        text += f" ×{ratio.estimate:.2f}"
        if ratio.known:
            text += f" [{ratio.low:.2f}, {ratio.high:.2f}]"
    return text
