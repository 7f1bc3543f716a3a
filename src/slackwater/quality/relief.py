"""What gives way when even the minimums do not fit: instances that move, queries that stop.

Algorithm 2 with its slips mended: low priorities go first, and what has been chosen is not taken
off the amount that is asked for, so that at least that much is released.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from slackwater.quality.graph import Bools, Floats, Ints
from slackwater.quality.load import Layout

ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Move:
    """An instance to be stopped and started again elsewhere."""

    instance: int
    origin: int  # workers
    target: int


@dataclass
class Relief:
    """What was found; ``free`` is what the minimums then leave of each worker."""

    free: Floats
    moves: list[Move] = field(default_factory=list)
    stopped: list[int] = field(default_factory=list)  # queries


def choose(asked: float, priority: Floats, needs: Floats) -> Ints:
    """Choose which instances of a worker leave so that at least ``asked`` cores are released.

    No priority is touched while lower ones suffice, and none that is chosen could be spared.

    >>> choose(0.5, np.array([1.0, 1.0, 2.0]), np.array([0.4, 0.6, 0.9])).tolist()
    [1]
    """
    # Up to which priority all would have to leave.
    ascending = np.argsort(priority, kind="stable")
    levels, firsts = np.unique(priority[ascending], return_index=True)
    totals = np.add.reduceat(needs[ascending], firsts).cumsum()
    enough = np.searchsorted(totals, asked - ROUNDING)
    highest = levels[min(int(enough), len(levels) - 1)]
    candidates = np.flatnonzero(priority <= highest)
    released = float(needs[candidates].sum())
    # Spare whom one can, the most important and largest first.
    order = np.lexsort((-needs[candidates], -priority[candidates]))
    chosen = []
    for instance in candidates[order].tolist():
        if released - needs[instance] >= asked - ROUNDING:
            released -= needs[instance]
        else:
            chosen.append(instance)
    return np.array(chosen, dtype=np.intp)


class Reliever:
    """Finds relief for workers whose minimums do not fit.

    Parameters
    ----------
    needs, priority
        By instance: cores for the minimum accuracy, and the task's priority.
    free
        By worker: cores that the minimums leave; negative where they do not fit.
    barred
        (instances, workers): where an instance must not go.
    settled
        By worker: whether something may leave it or come to it now.
    """

    def __init__(
        self,
        layout: Layout,
        needs: Floats,
        priority: Floats,
        free: Floats,
        barred: Sequence[frozenset[int]],
        settled: Bools,
    ) -> None:
        self._layout = layout
        self._needs = needs
        self._priority = priority
        self._barred = barred
        self._settled = settled
        self._at = layout.worker.copy()
        self.found = Relief(free.copy())

    def run(self) -> Relief:
        """Move first; only what no worker has room for stops."""
        for worker in np.flatnonzero((self.found.free < -ROUNDING) & self._settled).tolist():
            self._move_from(worker)
        for worker in np.flatnonzero((self.found.free < -ROUNDING) & self._settled).tolist():
            self._stop_for(worker)
        return self.found

    def _move_from(self, worker: int) -> None:
        here = np.flatnonzero((self._at == worker) & (self._needs > 0))
        chosen = choose(-self.found.free[worker], self._priority[here], self._needs[here])
        leaving = here[chosen]
        # The important ones choose where to go.
        for instance in leaving[np.argsort(-self._priority[leaving], kind="stable")].tolist():
            target = self._room_for(instance)
            if target is not None:
                self._move(instance, target)

    def _room_for(self, instance: int) -> int | None:
        free = np.where(self._settled, self.found.free, -np.inf)
        free[[self._at[instance], *self._barred[instance]]] = -np.inf
        best = int(np.argmax(free))
        return best if free[best] >= self._needs[instance] else None

    def _move(self, instance: int, target: int) -> None:
        origin, needed = int(self._at[instance]), self._needs[instance]
        self.found.free[origin] += needed
        self.found.free[target] -= needed
        self.found.moves.append(Move(instance, origin, target))
        self._at[instance] = target

    def _stop_for(self, worker: int) -> None:
        """Stop the least important queries, here or where that makes room, until it is enough."""
        graph = self._layout.graph
        for query in np.argsort(graph.priority, kind="stable").tolist():
            if self.found.free[worker] >= -ROUNDING:
                return
            mine = self._instances_of(query)
            if query in self.found.stopped or not len(mine):
                continue
            if (self._at[mine] == worker).any():
                self._stop(query, mine)
            else:
                self._stop_to_make_room(query, mine, worker)

    def _instances_of(self, query: int) -> Ints:
        """Return instances of the query's own task; what it lives on may serve others and stays."""
        return np.flatnonzero(
            (self._layout.task == self._layout.graph.queries[query]) & (self._needs > 0)
        )

    def _stop(self, query: int, instances: Ints) -> None:
        np.add.at(self.found.free, self._at[instances], self._needs[instances])
        self._needs = self._needs.copy()
        self._needs[instances] = 0.0
        self.found.stopped.append(query)

    def _stop_to_make_room(self, query: int, instances: Ints, worker: int) -> None:
        """Stop a query if something more important could then leave the worker."""
        priority = self._layout.graph.priority[query]
        waiting = np.flatnonzero(
            (self._at == worker) & (self._needs > 0) & (self._priority > priority)
        )
        for instance in waiting[np.argsort(self._priority[waiting], kind="stable")].tolist():
            for target in np.unique(self._at[instances]).tolist():
                made = self._needs[instances[self._at[instances] == target]].sum()
                room = self.found.free[target] + made
                allowed = self._settled[target] and target not in self._barred[instance]
                if allowed and room >= self._needs[instance] > self.found.free[target]:
                    self._stop(query, instances)
                    self._move(instance, target)
                    return
