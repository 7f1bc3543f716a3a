"""The quality controller: one cycle from measurements to accuracies, moves and stops.

Algorithm 1: every instance is first given the CPU of its minimum accuracy; where that does not
fit, something moves, and where there is no room for it either, the least important query stops.
What is left goes to queries by priority. Then it is worked out where rows are dropped.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from slackwater.core.errors import UsageError
from slackwater.quality.accuracies import Accuracy
from slackwater.quality.accuracies.throughput import Throughput
from slackwater.quality.cost import AccuracyCost
from slackwater.quality.graph import Bools, Floats
from slackwater.quality.load import Cluster, Layout, Load
from slackwater.quality.relief import ROUNDING, Relief, Reliever
from slackwater.quality.sharing import share
from slackwater.quality.shedding import Keep, keep
from slackwater.quality.warmup import Key, WarmUps

ROOM_TO_RESUME = 0.2  # a stopped query comes back when there is so much more than it needs


@dataclass(frozen=True)
class NamedMove:
    """An instance that goes from one worker to another."""

    instance: Key
    origin: str
    target: str


@dataclass(frozen=True)
class QualityDecision:
    """What a cycle has decided."""

    current: Floats  # by task: the accuracy that was measured
    desired: Floats  # by query
    keep: Keep  # for the shedders
    left: Floats  # by worker: cores that nobody has been given
    moves: tuple[NamedMove, ...] = ()
    stop: tuple[str, ...] = ()  # queries whose minimum no worker has room for
    resume: tuple[str, ...] = ()  # stopped ones for which there is room again
    warming: frozenset[Key] = frozenset()
    short: tuple[str, ...] = ()  # workers whose minimums do not fit, and nothing could be done yet
    lacked: dict[str, float] = field(default_factory=dict)  # cores for minimums, before any relief


class QualityController:
    """Decides; it neither measures nor acts.

    Parameters
    ----------
    accuracy
        The definition of the current accuracy.
    headroom
        Part of each worker's CPU that is not given away.
    warmups
        Limits of warm-ups.
    patience
        For how many cycles in a row minimums must not fit before anything moves or stops: a
        single measurement is no reason to interrupt a query.

    Examples
    --------
    >>> from slackwater.quality import Graph, Task
    >>> graph = Graph([Task("a", priority=2, min_accuracy=0.2), Task("b", min_accuracy=0.2)])
    >>> one = np.array([0, 1]), np.array([0, 0]), np.array([0, 0])
    >>> layout = Layout(graph, *one)
    >>> rates = np.array([100.0, 100.0])
    >>> load = Load.of(layout, in_rate=rates, cpu=np.array([0.8, 0.8]), source_rate=rates,
    ...                out_rate=np.zeros(0))
    >>> cluster = Cluster(("w",), np.array([1.0]), np.array([0.0]))
    >>> QualityController().cycle(0.0, cluster, layout, load).desired.round(2).tolist()
    [1.0, 0.25]
    """

    def __init__(
        self,
        accuracy: Accuracy | None = None,
        headroom: float = 0.0,
        warmups: WarmUps | None = None,
        patience: int = 1,
    ) -> None:
        if not 0 <= headroom < 1:
            raise UsageError(f"headroom is {headroom:g}; it is at least 0 and below 1")
        self.accuracy = accuracy or Throughput()
        self.headroom = headroom
        self.warmups = warmups or WarmUps()
        self.patience = patience
        self._short_for: Counter[str] = Counter()  # cycles in a row, by worker
        self._stopped: dict[str, Remembered] = {}  # queries, and what they cost when they ran

    @property
    def stopped(self) -> tuple[str, ...]:
        """Queries that do not run because their minimum does not fit."""
        return tuple(self._stopped)

    def forget(self, query: str) -> None:
        """Forget that a query was stopped here: it was started by hand, or has gone."""
        self._stopped.pop(query, None)

    def cycle(
        self, now_s: float, cluster: Cluster, layout: Layout, load: Load, settled: bool = True
    ) -> QualityDecision:
        """Run one turn: measurements in, decision out.

        Parameters
        ----------
        settled
            False: somebody is on the way or not measured yet, so nothing moves or stops. Otherwise
            an important query could stop for want of a less important one that is not seen.
        """
        graph = layout.graph
        current = self.accuracy.current(layout, load)
        cost = self._remembering(layout, load, AccuracyCost.of(layout, load, current))
        available = cluster.available * (1 - self.headroom)
        active = self._active(layout)
        warming = self._warming(now_s, layout, current)
        resumed = self._resume(now_s, layout, cost, available, active)
        warming |= {key for query in resumed for key in self._keys(layout, query)}

        before = self._free(layout, cost, available, active)
        if settled:
            relief = self._relieve(now_s, cluster, layout, cost, available, active, warming)
        else:
            relief = Relief(before)
            self._short_for.clear()
        moved = self._carry_out(now_s, cluster, layout, relief)
        active[relief.stopped] = False
        self._remember(layout, load, cost, relief.stopped)
        warming |= {layout.key(move.instance) for move in relief.moves}

        held = self._held(moved, warming)
        running = cost.without(~self._runs(moved, active))
        least = np.where(active, graph.min_accuracy, 0.0)
        free = self._free(moved, running, available, active)
        desired, left = share(moved, running, least, np.maximum(free, 0.0), active, active & ~held)
        return QualityDecision(
            current=current,
            desired=desired,
            keep=keep(graph, desired, active),
            left=left,
            moves=tuple(
                NamedMove(layout.key(m.instance), cluster.names[m.origin], cluster.names[m.target])
                for m in relief.moves
            ),
            stop=tuple(graph.tasks[graph.queries[query]].name for query in relief.stopped),
            resume=tuple(graph.tasks[graph.queries[query]].name for query in resumed),
            warming=frozenset(warming),
            short=tuple(cluster.names[w] for w in np.flatnonzero(free < -ROUNDING)),
            lacked={
                cluster.names[w]: -float(before[w]) for w in np.flatnonzero(before < -ROUNDING)
            },
        )

    # -- steps ----------------------------------------------------------------------------------

    def _active(self, layout: Layout) -> Bools:
        graph = layout.graph
        active = np.ones(len(graph.queries), bool)
        if self._stopped:
            active[:] = [graph.tasks[q].name not in self._stopped for q in graph.queries]
        return active

    def _runs(self, layout: Layout, active: Bools) -> Bools:
        """Tell by task whether any query needs it."""
        return layout.graph.over_queries(np.ones(len(active)), active) > 0

    def _warming(self, now_s: float, layout: Layout, current: Floats) -> set[Key]:
        """Return who warms up; whoever has reached its minimum is warm."""
        warming = self.warmups.warming(now_s)
        if not warming:
            return warming
        least = layout.graph.over_queries(
            layout.graph.min_accuracy, np.ones(len(layout.graph.queries), bool)
        )
        for name, number in list(warming):
            task = layout.graph.index.get(name)
            if task is None or current[task] >= least[task]:
                self.warmups.reached((name, number))
                warming.discard((name, number))
        return warming

    def _held(self, layout: Layout, warming: set[Key]) -> Bools:
        """Tell by query whether it shares a worker with an instance that warms up."""
        graph = layout.graph
        if not warming:
            return np.zeros(len(graph.queries), bool)
        keys = [layout.key(instance) in warming for instance in range(len(layout.task))]
        workers = np.unique(layout.worker[np.array(keys, bool)])
        touched = np.zeros(len(graph.tasks), bool)
        touched[layout.task[np.isin(layout.worker, workers)]] = True
        held = np.zeros(len(graph.queries), bool)
        np.logical_or.at(held, graph.pair_query, touched[graph.pair_task])
        return held

    def _free(self, layout: Layout, cost: AccuracyCost, available: Floats, active: Bools) -> Floats:
        """Return by worker what the minimums leave; negative where they do not fit."""
        needs = self._needs(layout, cost, active)
        return available - np.bincount(layout.worker, weights=needs, minlength=len(available))

    def _needs(self, layout: Layout, cost: AccuracyCost, active: Bools) -> Floats:
        """Return by instance the cores for its minimum accuracy (equation 9)."""
        least = layout.graph.over_queries(layout.graph.min_accuracy, active)
        needs = cost.required(least) * self._runs(layout, active)
        return needs[layout.task]

    def _relieve(
        self,
        now_s: float,
        cluster: Cluster,
        layout: Layout,
        cost: AccuracyCost,
        available: Floats,
        active: Bools,
        warming: set[Key],
    ) -> Relief:
        free = self._free(layout, cost, available, active)
        short = {cluster.names[w] for w in np.flatnonzero(free < -ROUNDING)}
        self._short_for = Counter({name: self._short_for[name] + 1 for name in short})
        if not short:
            return Relief(free)
        settled = np.ones(len(free), bool)
        for worker, name in enumerate(cluster.names):
            settled[worker] = not 0 < self._short_for[name] < self.patience
        if warming:
            for instance in range(len(layout.task)):
                if layout.key(instance) in warming:
                    settled[layout.worker[instance]] = False
        place = {name: number for number, name in enumerate(cluster.names)}
        barred = [
            frozenset(
                place[origin] for origin in [self._barred(layout, i, now_s)] if origin in place
            )
            for i in range(len(layout.task))
        ]
        priority = layout.graph.over_queries(layout.graph.priority, active)[layout.task]
        needs = self._needs(layout, cost, active)
        return Reliever(layout, needs, priority, free, barred, settled).run()

    def _barred(self, layout: Layout, instance: int, now_s: float) -> str | None:
        return self.warmups.barred(layout.key(instance), now_s)

    def _carry_out(self, now_s: float, cluster: Cluster, layout: Layout, relief: Relief) -> Layout:
        """Carry moves and stops out; return the layout as it will be."""
        if not relief.moves:
            return layout
        workers = layout.worker.copy()
        for move in relief.moves:
            workers[move.instance] = move.target
            self.warmups.begin(layout.key(move.instance), now_s, cluster.names[move.origin])
        return replace(layout, worker=workers)

    # -- queries that do not run ----------------------------------------------------------------

    def _remember(self, layout: Layout, load: Load, cost: AccuracyCost, queries: list[int]) -> None:
        graph = layout.graph
        for query in queries:
            tasks = graph.pair_task[graph.pair_query == query]
            costs = {graph.tasks[t].name: (cost.fixed[t], cost.slope[t]) for t in tasks}
            name = graph.tasks[graph.queries[query]].name
            self._stopped[name] = Remembered(_input_rate(layout, load, query), costs)

    def _remembering(self, layout: Layout, load: Load, cost: AccuracyCost) -> AccuracyCost:
        """Return what tasks that do not run would cost, by what they did and what comes now."""
        graph = layout.graph
        if not self._stopped:
            return cost
        fixed, slope = cost.fixed.copy(), cost.slope.copy()
        idle = ~self._runs(layout, self._active(layout))
        for query, task in enumerate(graph.queries.tolist()):
            past = self._stopped.get(graph.tasks[task].name)
            if past is None:
                continue
            rate = _input_rate(layout, load, query)
            scale = rate / past.rate if past.rate > 0 else 1.0
            for name, (then_fixed, then_slope) in past.costs.items():
                place = graph.index.get(name)  # None: it is on the way, or its worker has died
                if place is not None and idle[place]:
                    fixed[place], slope[place] = then_fixed, then_slope * scale
        return replace(cost, fixed=fixed, slope=slope)

    def _resume(
        self, now_s: float, layout: Layout, cost: AccuracyCost, available: Floats, active: Bools
    ) -> list[int]:
        """Make stopped queries active for which there is room again, the most important first."""
        graph = layout.graph
        found: list[int] = []
        if not self._stopped:
            return found
        for query in np.argsort(-graph.priority, kind="stable").tolist():
            name = graph.tasks[graph.queries[query]].name
            if name not in self._stopped:
                continue
            before = self._free(layout, cost, available, active)
            active[query] = True
            after = self._free(layout, cost, available, active)
            needed = before - after
            if np.any((needed > 0) & (after < ROOM_TO_RESUME * needed)):
                active[query] = False
                continue
            del self._stopped[name]
            found.append(query)
            for key in self._keys(layout, query):
                self.warmups.begin(key, now_s)
        return found

    def _keys(self, layout: Layout, query: int) -> list[Key]:
        mine = np.flatnonzero(layout.task == layout.graph.queries[query])
        return [layout.key(instance) for instance in mine.tolist()]


@dataclass(frozen=True)
class Remembered:
    """A query that was stopped."""

    rate: float  # rows per second that its sources had
    costs: dict[str, tuple[float, float]]  # of the tasks that it lives on: fixed, slope


def _input_rate(layout: Layout, load: Load, query: int) -> float:
    graph = layout.graph
    return float(load.source_rate[graph.pair_task[graph.pair_query == query]].sum())
