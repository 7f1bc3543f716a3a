"""What all experiments share: settings, rows, panels."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from slackwater.core.errors import UsageError
from slackwater.report.result import Findings, Panel
from slackwater.statistics.intervals import Interval, mean_interval
from slackwater_bench.comparison import Show
from slackwater_bench.simulate.settings import Settings
from slackwater_bench.simulate.trial import Outcome, SimulatedTrial, run
from slackwater_bench.time_left import TimeLeft

SPEED_S = 4e-4  # real time of a second of a query, at a guess

Row = dict[str, Any]  # fields of a trial and its figures, as they go to JSON
Series = dict[str, dict[float, Interval]]


class Experiment(ABC):
    """Base of every experiment: a member says what to run and how to show it."""

    name: ClassVar[str] = ""  # as users write it
    title: ClassVar[str] = ""
    about: ClassVar[str] = ""  # one or two sentences
    columns: ClassVar[str] = ""  # keys of the rows that a table shows
    uses: ClassVar[str] = (
        "workloads policies queries delays arrivals seconds repeat cores cold seed"
    )
    several_cores: ClassVar[bool] = False  # compares machines of different sizes
    usual: ClassVar[Settings] = Settings()

    def settings(self, **changes: Any) -> Settings:
        """Return the usual ones with some changed."""
        for name in changes:
            if name not in self.uses.split():
                raise UsageError(f"{self.name} does not take --{name}")
        found = replace(self.usual, **changes)
        if len(found.cores) > 1 and not self.several_cores:
            raise UsageError(f"{self.name} takes one number of --cores")
        return found

    def run(self, settings: Settings, show: Show) -> dict[str, Any]:
        """Return the result as it goes to JSON: what was asked, ``rows`` and ``panels``."""
        return {
            "experiment": self.name,
            "title": self.title,
            "about": self.about,
            "columns": self.columns.split(),
            "settings": {name: self._asked(settings, name) for name in self.uses.split()},
        } | self._run(settings, show)

    def _asked(self, settings: Settings, name: str) -> Any:
        """Return a setting as the result says it."""
        value = getattr(settings, name)
        return value[0] if name == "cores" and not self.several_cores else value

    @abstractmethod
    def _run(self, settings: Settings, show: Show) -> Findings:
        """Run the trials; return their rows and plots."""


def base_trial(settings: Settings) -> SimulatedTrial:
    """Return a trial with what the experiment does not change; its beginning does not count."""
    return SimulatedTrial(
        "klink",
        queries=settings.queries[0],
        arrivals=settings.arrivals,
        seconds=settings.seconds,
        warmup_s=min(120.0, settings.seconds / 2),
        cores=settings.cores[0],
        cold=settings.cold,
        seed=settings.seed,
    )


def streams(settings: Settings) -> dict[str, Sequence[str]]:
    """Return axes of :func:`trials`: what the queries read."""
    return {"delays": settings.delays, "workload": settings.workloads}


def trials(base: SimulatedTrial, repeat: int, **axes: Iterable[Any]) -> list[SimulatedTrial]:
    """Return one trial for every combination, repeats with other seeds.

    >>> [t.queries for t in trials(SimulatedTrial("klink"), 1, queries=(4, 8))]
    [4, 8]
    """
    found = [replace(base, seed=base.seed + number) for number in range(repeat)]
    for name, values in axes.items():
        found = [replace(trial, **{name: value}) for value in values for trial in found]
    return found


def run_all(
    wanted: Sequence[SimulatedTrial],
    show: Show,
    simulate: Callable[[SimulatedTrial], Outcome] = run,
) -> list[tuple[SimulatedTrial, Outcome]]:
    """Run all of them, one after the other, saying which."""
    left, done = TimeLeft(), []
    left.expect(*(SPEED_S * trial.queries * trial.seconds for trial in wanted))
    for trial in wanted:
        show(left.step(described(trial)))
        done.append((trial, simulate(trial)))
    return done


def described(trial: SimulatedTrial) -> str:
    nodes = f", {trial.nodes} nodes" if trial.nodes > 1 else ""
    return f"{trial.policy}, {trial.workload}, {trial.queries} queries{nodes}, seed {trial.seed}"


def rows(done: Iterable[tuple[SimulatedTrial, Outcome]]) -> list[Row]:
    return [outcome.row(trial) for trial, outcome in done]


def latency_series(
    done: Sequence[tuple[SimulatedTrial, Outcome]],
    name: Callable[[SimulatedTrial], str],
    place: Callable[[SimulatedTrial], float],
) -> Series:
    """Return mean latency with its interval, over repeats, by name and by place on the axis."""
    runs: dict[tuple[str, float], list[Any]] = {}
    for trial, outcome in done:
        runs.setdefault((name(trial), place(trial)), []).append(outcome.latencies_s)
    series: Series = {}
    for (label, at), values in runs.items():
        if all(map(len, values)):
            series.setdefault(label, {})[at] = mean_interval(values)
    return series


def row_series(
    rows: Iterable[Row], key: str, name: Callable[[Row], str], place: Callable[[Row], float]
) -> Series:
    """Return a figure of the rows, averaged over repeats, without intervals."""
    found: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row[key] is not None:
            found.setdefault(name(row), {}).setdefault(place(row), []).append(row[key])
    nan = float("nan")
    return {
        label: {at: Interval(sum(seen) / len(seen), nan, nan) for at, seen in points.items()}
        for label, points in found.items()
    }


def panel(title: str, caption: str, x_label: str, y_label: str, series: Mapping[str, Any]) -> Panel:
    """Return a plot as it goes to JSON: by name a list of x, y, low, high (or null)."""
    lines = {
        name: [[at, *_plain(points[at])] for at in sorted(points)]
        for name, points in series.items()
    }
    return {
        "title": title,
        "caption": caption,
        "x_label": x_label,
        "y_label": y_label,
        "series": lines,
    }


def _plain(value: Any) -> list[float | None]:
    if not isinstance(value, Interval):
        return [float(value), None, None]
    known = value.known
    return [value.estimate, value.low if known else None, value.high if known else None]
