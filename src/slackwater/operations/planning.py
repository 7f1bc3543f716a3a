"""How late a fleet's results will be on so many cores, and what a target takes."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from rich.table import Table

from slackwater.common.durations import as_seconds
from slackwater.core.windows import Deadlines
from slackwater.engines.simulator.prediction import (
    MEASURED,
    START_S,
    Calibration,
    Prediction,
    predict,
)
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.engines.spark.queries.specs import max_wait_s
from slackwater.operations.fleet_file import FleetFile
from slackwater.traffic import Traffic

WARMUP_S, SECONDS = 15.0, 60.0  # simulated at least
WINDOWS = 3  # of every query at least
MOST_QUERIES, MOST_CORES, MOST_DRIVERS = 2000, 512, 64  # that are looked for
NO_WINDOW_S = 1.0  # how often a query without windows is taken to run

Fits = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Planned:
    """A query as far as planning needs it."""

    name: str
    deadlines: Deadlines
    rate: float  # events/s
    trigger_s: float | None = None
    priority: float = 1.0
    max_wait_s: float = 10.0
    one_batch: bool = False  # its watermark is raised, so that a window takes one batch

    def simulated(self, name: str, number: int, costs: BatchCosts) -> SimulatedQuery:
        windows = self.deadlines.closing
        delays = [i.watermark_delay_s for i in self.deadlines.inputs if i.watermark_delay_s]
        delay_s = max(delays, default=0.0)
        chance = np.random.default_rng(number)
        slide_s = min((window.slide_s for window in windows), default=NO_WINDOW_S)
        window_s = max((w.size_s for w in windows), default=NO_WINDOW_S)
        return SimulatedQuery(
            name=name,
            traffic=Traffic(
                start_s=START_S,
                rate=f"{self.rate:g}",
                delays=f"uniform:0:{max(1, round(delay_s * 1e3))}ms",
                seed=number + 1,
            ),
            window_s=window_s,
            slide_s=slide_s,
            phase_s=float(chance.uniform(0, slide_s)),
            watermark_s=delay_s,
            costs=costs,
            trigger_s=self.trigger_s,
            priority=self.priority,
            max_wait_s=self.max_wait_s,
            output_mode=self.deadlines.output_mode,
            one_batch=self.one_batch,
        )


def trigger_s(name: str, stated: str | float | None) -> float | None:
    """Read the interval of a query's trigger as Spark does.

    >>> trigger_s("q", "2 seconds"), trigger_s("q", "1 minute 500 milliseconds")
    (2.0, 60.5)
    """
    return None if stated is None else as_seconds(f"{name}: trigger", stated)


class Outline(Protocol):
    """What is known of a query without starting it."""

    @property
    def deadlines(self) -> Deadlines:
        """Its windows and inputs."""

    @property
    def own_writer(self) -> bool:
        """Whether its function returns a writer: then the section's trigger does not count."""

    @property
    def one_batch(self) -> bool:
        """Whether the batch that reads past a window's end can emit it as well."""


def planned(fleet: FleetFile, name: str, outline: Outline, usual_rate: float) -> Planned:
    """Describe a query by its section and its plan.

    Parameters
    ----------
    usual_rate
        Events/s where the section names no rate.
    """
    section = fleet.queries[name]
    return Planned(
        name,
        outline.deadlines,
        section.rate or usual_rate,
        trigger_s(name, section.interval) if section.refreshed or not outline.own_writer else None,
        section.priority,
        max_wait_s(section.max_wait or fleet.max_wait, outline.deadlines),
        outline.one_batch,
    )


def not_planned(fleet: FleetFile, own_writers: Iterable[str]) -> list[str]:
    """Return what the file says and the model does not know, a line each.

    Parameters
    ----------
    own_writers
        Queries whose functions return a writer: what it sets is not looked at.
    """
    lines = ["gate = none: planned without a policy"] if fleet.gate == "none" else []
    lines += [
        f"{name}: its function returns a writer; planned with output mode append and no trigger"
        for name in own_writers
    ]
    lines += [
        f"{name}: planned as if it were exact; the model knows no approximate queries"
        for name, query in fleet.queries.items()
        if query.approximate is not None
    ]
    lines += [
        f"{name}: planned as a query that runs so often; the model knows no runs that end"
        for name, query in fleet.queries.items()
        if query.refreshed
    ]
    return lines


@dataclass(frozen=True)
class Planner:
    """Asks the model.

    Parameters
    ----------
    queries
        The fleet's; more of them are copies of these in turn.
    calibration
        Of the machine and its queries; without one that of YSB queries on two cores.
    driver_cores
        Of one driver where drivers have machines of their own.
    """

    queries: Sequence[Planned]
    policy: str
    calibration: Calibration = MEASURED
    driver_cores: float | None = None
    slots: int | None = None  # None: 1.5 a core
    parameters: dict[str, Any] = field(default_factory=dict)  # of the policy

    def predict(self, cores: int, count: int | None = None, drivers: int = 1) -> Prediction:
        """Predict so many queries, spread evenly over the drivers; the fullest driver counts."""
        count = len(self.queries) if count is None else count
        mine = list(range(0, count, drivers))
        fleet = [self._copy(number) for number in mine]
        return predict(
            fleet,
            self.policy,
            self.calibration.machine(cores, self.slots, drivers, self.driver_cores),
            warmup_s=max(WARMUP_S, *(q.window_s + q.delay_s for q in fleet)),
            seconds=max(SECONDS, *(WINDOWS * q.window.slide_s for q in fleet)),
            parameters=self.parameters,
        )

    def most_queries(self, cores: int, p99_s: float) -> int:
        """Return how many queries keep the 99th percentile; 0 if not even one does."""
        return last(lambda count: self.predict(cores, count).p99_s <= p99_s, MOST_QUERIES)

    def least_cores(self, p99_s: float) -> int | None:
        """Return the fewest cores that keep it for this fleet; ``None`` if no number does."""
        missed = last(lambda cores: self.predict(cores).p99_s > p99_s, MOST_CORES)
        return missed + 1 if missed < MOST_CORES else None

    def least_drivers(self, cores: int, p99_s: float) -> int | None:
        """Return the fewest drivers that keep it on these cores."""
        most = min(MOST_DRIVERS, len(self.queries))
        missed = last(lambda n: self.predict(cores, drivers=n).p99_s > p99_s, most)
        return missed + 1 if missed < most else None

    def _copy(self, number: int) -> SimulatedQuery:
        query = self.queries[number % len(self.queries)]
        turn = number // len(self.queries)
        name = query.name if turn == 0 else f"{query.name}#{turn + 1}"  # no query is called so
        return query.simulated(name, number, self.calibration.costs)


def planner_of_file(
    fleet: FleetFile,
    queries: Sequence[Planned],
    calibration: Calibration,
    driver_cores: float | None,
) -> Planner:
    """Plan with what a fleet file says; without a gate no policy decides."""
    policy, parameters = fleet.policy, fleet.parameters
    if fleet.gate == "none":
        policy, parameters = "spark", {}
    return Planner(queries, policy, calibration, driver_cores, fleet.slots, parameters)


def last(holds: Fits, most: int) -> int:
    """Return the largest number up to ``most`` for which something holds that stops holding.

    0 if there is none.

    >>> last(lambda n: n <= 37, 1000), last(lambda n: False, 1000), last(lambda n: True, 8)
    (37, 0, 8)
    """
    good, step = 0, 1
    while good + step <= most and holds(good + step):
        good, step = good + step, step * 2
    if good == most:
        return most
    bad = min(good + step, most + 1)
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def plan(
    planner: Planner, cores: int, p99_s: float | None, show: Callable[[str], None]
) -> dict[str, Any]:
    """Answer everything that a user asks, as it goes to JSON."""
    show(f"predicting {len(planner.queries)} queries on {cores} cores")
    found = planner.predict(cores)
    by_query: dict[str, list[float]] = {query.name: [] for query in planner.queries}
    for result in found.results:
        by_query[result.query].append(result.latency_s)
    rows = [
        {
            "query": name,
            "windows": len(seen),
            "mean_s": float(np.mean(seen)) if seen else None,
            "p99_s": float(np.quantile(seen, 0.99)) if seen else None,
        }
        for name, seen in by_query.items()
    ]
    answer: dict[str, Any] = {
        "policy": planner.policy,
        "cores": cores,
        "mean_s": found.mean_s,
        "p99_s": found.p99_s,
        "queries": rows,
    }
    if p99_s is not None:
        show("looking for the most queries")
        answer["target_p99_s"] = p99_s
        answer["most_queries"] = planner.most_queries(cores, p99_s)
        show("looking for the least cores")
        answer["least_cores"] = planner.least_cores(p99_s)
        if planner.driver_cores is not None:
            show("looking for the least drivers")
            answer["least_drivers"] = planner.least_drivers(cores, p99_s)
    return answer


def table(answer: dict[str, Any]) -> Table:
    """Make a table of the prediction for people."""
    grid = Table(
        title=f"predicted under {answer['policy']} on {answer['cores']} cores", title_justify="left"
    )
    for column in ("query", "windows", "mean s", "p99 s"):
        grid.add_column(column, justify="left" if column == "query" else "right")
    for row in answer["queries"]:
        figures = ("-" if row[key] is None else f"{row[key]:.2f}" for key in ("mean_s", "p99_s"))
        grid.add_row(row["query"], str(row["windows"]), *figures)
    grid.add_section()
    grid.add_row("all", "", f"{answer['mean_s']:.2f}", f"{answer['p99_s']:.2f}")
    return grid


def sentences(answer: dict[str, Any]) -> list[str]:
    """Say what a target takes."""
    if "target_p99_s" not in answer:
        return []
    target = f"p99 ≤ {answer['target_p99_s']:g} s"
    most, cores, least = answer["most_queries"], answer["cores"], answer["least_cores"]
    where = f"such queries on {cores} {_plural(cores, 'core')}"
    found = [f"{target}: {f'at most {most}' if most < MOST_QUERIES else f'{most} or more'} {where}"]
    found.append(
        f"{target}: this fleet needs {least} {_plural(least, 'core')}"
        if least is not None
        else f"{target}: not even {MOST_CORES} cores are enough for this fleet"
    )
    if "least_drivers" in answer:
        drivers = answer["least_drivers"]
        found.append(
            f"{target}: drivers needed: {drivers}"
            if drivers is not None
            else f"{target}: more drivers do not help on {cores} {_plural(cores, 'core')}"
        )
    return found


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
