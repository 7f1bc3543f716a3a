"""What workers report, as the quality controller takes it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from slackwater.operations.workers.messages import QueryCost, QueryReport, WorkerReport
from slackwater.quality import Cluster, Graph, Keep, Layout, Load, Task
from slackwater.quality.graph import Floats, Ints

NOTHING = QueryReport()
SMOOTHING = 0.1  # weight of the newest look at what a row costs

Phase = Literal["unplaced", "starting", "running", "moving", "stopping", "stopped", "failed"]


@dataclass(frozen=True)
class Wanted:
    """A query of the fleet file."""

    name: str
    priority: float = 1.0
    min_accuracy: float | None = None  # None: it is never shed, moved or stopped for want of CPU
    prefers: tuple[str, ...] = ()  # workers
    task: str | None = None  # of an application; several queries of one task are its instances
    reads: tuple[str, ...] = ()  # tasks that write the logs it reads

    @property
    def of_task(self) -> str:
        return self.task or self.name


@dataclass(frozen=True)
class Directive:
    """What a worker is to do."""

    worker: str
    op: Literal["start", "stop", "aim"]
    query: str
    accuracy: float | None = None  # part of its input that its shedders are to keep
    least: float | None = None  # and the least that a burst may leave of it


@dataclass
class Placed:
    """A query and where it is."""

    wanted: Wanted
    phase: Phase = "unplaced"
    worker: str | None = None
    since_s: float = 0.0  # when it was first seen to run there
    measured_s: float | None = None  # and what it costs there
    target: str | None = None  # of a move
    told_s: float = 0.0  # when its worker was last told something
    error: str | None = None
    failures: int = 0
    moves: int = 0
    desired: float | None = None  # accuracy that the application is to have here
    home: str | None = None  # the worker that it was last on
    cost: QueryCost | None = None  # and what it cost there
    row_cost: float | None = None  # cores for each row a second at its sources, smoothed


@dataclass
class WorkerView:
    """A worker as it last reported."""

    name: str
    cores: float
    report: WorkerReport | None = None  # None: it has only just joined

    @property
    def queries(self) -> Mapping[str, QueryReport]:
        """The queries that it runs, by name."""
        return {} if self.report is None else self.report.queries


def reported(placed: Placed, workers: Mapping[str, WorkerView]) -> QueryReport:
    """Return what is known of a query where it runs."""
    view = workers.get(placed.worker or "")
    return NOTHING if view is None else view.queries.get(placed.wanted.name, NOTHING)


class Model:
    """The graph of the applications that run, with what was measured.

    Parameters
    ----------
    running
        Queries that may be shed and whose costs are known; also those that were stopped for want
        of CPU, with what they cost when they ran.
    everyone
        All queries: which instance is which, and what those cost that are never shed.
    """

    def __init__(
        self, running: list[Placed], everyone: Collection[Placed], workers: Mapping[str, WorkerView]
    ) -> None:
        self._running = running
        self._everyone = everyone
        self._numbers = _numbers(everyone)
        tasks = {each.wanted.of_task: each.wanted for each in running}
        self.graph = Graph([_task(name, wanted, tasks) for name, wanted in tasks.items()])
        names = tuple(workers)
        self.layout = Layout(
            self.graph,
            np.array([self.graph.index[each.wanted.of_task] for each in running], dtype=np.intp),
            np.array([names.index(_place(each)) for each in running], dtype=np.intp),
            np.array([self._numbers[each.wanted.name] for each in running], dtype=np.intp),
        )
        self.cluster = Cluster(
            names,
            np.array([workers[name].cores for name in names]),
            np.array([_others(workers[name], everyone) for name in names]),
        )
        self._rates = _rates(running, workers)
        self.load = self._load([reported(each, workers).cost or each.cost for each in running])

    def query(self, task: str, number: int) -> Placed:
        """Return the query that is an instance."""
        return next(each for each in self.instances(task) if self._number(each) == number)

    def instances(self, task: str) -> list[Placed]:
        """Return the queries of a task."""
        return [each for each in self._running if each.wanted.of_task == task]

    def aims(self, keep: Keep) -> list[Directive]:
        """Return what the shedders of each query are to keep: all instances of a task the same."""
        own = np.zeros(len(self.graph.tasks))  # what was stated for a source itself
        for each in self._running:
            place = self.graph.index[each.wanted.of_task]
            own[place] = max(own[place], each.wanted.min_accuracy or 0.0)
            each.desired = round(max(float(keep.tasks[place]), own[place] * bool(each.worker)), 4)
        aim = np.ones(len(self.graph.tasks))
        aim[self.graph.sources] = keep.sources
        inner = np.full(len(aim), np.inf)
        np.minimum.at(inner, self.graph.edges[:, 1], keep.edges)
        aim = np.where(np.isfinite(inner), inner, aim)
        floors = np.maximum(self._floors(), own)
        # What is given changes sooner than this is said again: a burst costs producers accuracy at
        # once. What a burst here must leave is enough whatever they do; what is kept otherwise is
        # enough for what they were seen to do.
        least = np.minimum(1.0, floors / self._given_of(floors))
        aim = np.maximum(aim, np.minimum(1.0, floors / np.maximum(self._now_given, 1e-9)))
        found = []
        for each in self._running:
            if each.worker is None:
                continue
            task = self.graph.index[each.wanted.of_task]
            numbers = (round(float(aim[task]), 4), round(float(least[task]), 4))
            found.append(Directive(each.worker, "aim", each.wanted.name, *numbers))
        return found

    def _floors(self) -> Floats:
        """Return by task what its readers must at least be left.

        Those included that are on the way, not measured yet, or never shed.
        """
        floors = self.graph.over_queries(
            self.graph.min_accuracy, np.ones(len(self.graph.queries), bool)
        )
        reads = {each.wanted.of_task: each.wanted.reads for each in self._everyone}
        for each in self._everyone:
            if each in self._running or each.phase in ("stopped", "failed"):
                continue
            least = 1.0 if each.wanted.min_accuracy is None else each.wanted.min_accuracy
            above, seen = list(each.wanted.reads), set()
            while above:
                name = above.pop()
                if name not in seen:
                    seen.add(name)
                    above += reads.get(name, ())
                    if name in self.graph.index:
                        place = self.graph.index[name]
                        floors[place] = max(floors[place], least)
        return floors

    def _given_of(self, accuracies: Floats) -> Floats:
        """Return by task the least accuracy of its producers; 1 without any."""
        given = np.ones(len(accuracies))
        np.minimum.at(given, self.graph.edges[:, 1], accuracies[self.graph.edges[:, 0]])
        found: Floats = np.maximum(given, 1e-9)
        return found

    def _number(self, placed: Placed) -> int:
        return self._numbers[placed.wanted.name]

    def _load(self, known: Sequence[QueryCost | None]) -> Load:
        """Return the load; a source whose rate is not known has one row a second: parts count."""
        task = self.layout.task
        costs = [each for each in known if each is not None]
        assert len(costs) == len(known), "only queries whose costs are known are modelled"
        local = np.array([min(max(cost.current, 0.01), 1.0) for cost in costs])
        fixed = np.array([cost.fixed for cost in costs])
        slope = np.array([cost.slope for cost in costs])
        tasks = len(self.graph.tasks)
        source_rate = np.zeros(tasks)
        for source in self.graph.sources.tolist():
            source_rate[source] = self._rates.get(self.graph.tasks[source].name) or 1.0
        least = np.full(tasks, np.inf)
        np.minimum.at(least, task, local)
        offered = self._offered(source_rate, least)
        given = self._now_given = self._given(least)
        slope = self._steady(slope / given[task], self._at_sources(source_rate)[task])
        return Load(
            in_rate=(least * offered / self.layout.instances)[task],
            cpu=fixed + slope * (least * given)[task],
            source_rate=source_rate,
            out_rate=(least * offered)[self.graph.edges[:, 0]],
            fixed=_by_task(fixed, task, tasks),
            most=_by_task(np.array([cost.most for cost in costs]), task, tasks),
        )

    def _steady(self, slope: Floats, at_sources: Floats) -> Floats:
        """Return cores at full accuracy that do not follow what sources have just shed.

        By what sources are offered now, which is known exactly, and what a row of theirs costs,
        which is not.

        What sources shed comes to a log seconds later; without this a query would seem to cost
        less whenever its sources have just let more through, and the reverse.
        """
        found, fed = slope.copy(), ~np.isin(self.layout.task, self.graph.sources)
        for place, each in enumerate(self._running):
            if not fed[place] or at_sources[place] <= 0:
                continue
            now = slope[place] / at_sources[place]
            if each.row_cost is None or each.worker is None:
                each.row_cost = each.row_cost or now
            else:
                each.row_cost += SMOOTHING * (now - each.row_cost)
            found[place] = each.row_cost * at_sources[place]
        return found

    def _given(self, local: Floats) -> Floats:
        """Return by task the least accuracy of its producers (equation 3)."""
        given = np.ones(len(local))
        for layer in self.graph.layers:
            producers, consumers = self.graph.edges[layer].T
            least = np.full(len(local), np.inf)
            np.minimum.at(least, consumers, (local * given)[producers])
            given = np.where(np.isfinite(least), least, given)
        return given

    def _at_sources(self, source_rate: Floats) -> Floats:
        """Return by task the rows a second of the sources that it lives on."""
        found = source_rate.copy()
        for layer in self.graph.layers:
            producers, consumers = self.graph.edges[layer].T
            np.add.at(found, consumers, found[producers])
        return found

    def _offered(self, source_rate: Floats, local: Floats) -> Floats:
        offered = source_rate.copy()
        for layer in self.graph.layers:
            producers, consumers = self.graph.edges[layer].T
            np.add.at(offered, consumers, (local * offered)[producers])
        return offered


def _task(name: str, wanted: Wanted, tasks: Mapping[str, Wanted]) -> Task:
    feeds = tuple(other for other, theirs in tasks.items() if name in theirs.reads)
    return Task(name, feeds, wanted.priority, wanted.min_accuracy or 0.0)


def _place(placed: Placed) -> str:
    return placed.worker or placed.home or ""


def _rates(queries: Iterable[Placed], workers: Mapping[str, WorkerView]) -> dict[str, float]:
    """Return by task the rows a second that come for its instances, as far as is known."""
    found: dict[str, float] = {}
    for each in queries:
        rate = reported(each, workers).rate
        found[each.wanted.of_task] = found.get(each.wanted.of_task, 0.0) + (rate or 0.0)
    return found


def _others(view: WorkerView, everyone: Iterable[Placed]) -> float:
    """Return cores that queries which may be shed cannot have: of others, processes and queries."""
    used = 0.0 if view.report is None else view.report.others
    for each in everyone:
        cost = view.queries.get(each.wanted.name, NOTHING).cost
        if each.wanted.min_accuracy is None and each.worker == view.name and cost is not None:
            used += cost.needed
    return used


def _numbers(queries: Iterable[Placed]) -> dict[str, int]:
    """Number the instances of each task."""
    seen: dict[str, int] = {}
    found = {}
    for each in queries:
        task = each.wanted.of_task
        found[each.wanted.name] = seen.get(task, 0)
        seen[task] = found[each.wanted.name] + 1
    return found


def _by_task(values: Floats, task: Ints, tasks: int) -> Floats:
    """Return by task the largest of its instances."""
    found = np.zeros(tasks)
    np.maximum.at(found, task, values)
    return found
