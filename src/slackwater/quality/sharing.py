"""Who gets what is left over after all minimums: Algorithm 1, lines 15 to 19, and Algorithm 3.

The published algorithm goes over workers one after another and may give a task CPU that another
worker keeps it from using. Here accuracies rise together, a step at a time: each worker splits
what it has left evenly among the instances that can still use it, each query rises as far as the
scarcest of its workers allows, and what was not needed is there for the next step.
"""

import numpy as np

from slackwater.quality.cost import AccuracyCost
from slackwater.quality.graph import Bools, Floats, Ints
from slackwater.quality.load import Layout

STEPS = 20  # at most
ENOUGH = 1e-4  # accuracy that is not worth another step


def share(
    layout: Layout, cost: AccuracyCost, least: Floats, left: Floats, active: Bools, may_rise: Bools
) -> tuple[Floats, Floats]:
    """Return desired accuracies by query, and the cores that are then left by worker.

    Parameters
    ----------
    least
        By query, the accuracy that each has already.
    left
        By worker, cores that are left then.
    active
        By query: whether it runs.
    may_rise
        By query; others stay where they are.
    """
    desired, left = least.copy(), left.copy()
    for priority in np.unique(layout.graph.priority[may_rise])[::-1]:
        queries = np.flatnonzero(may_rise & (layout.graph.priority == priority) & (least < 1.0))
        if len(queries):
            level = _Level(layout, cost, desired, active, queries)
            desired[queries], left = level.rise(left)
    return desired, left


class _Level:
    """The queries of one priority, with the tasks and instances that they live on.

    Arrays of tasks, queries and pairs have only those: that is what makes a cycle fast.
    """

    def __init__(
        self, layout: Layout, cost: AccuracyCost, desired: Floats, active: Bools, queries: Ints
    ) -> None:
        graph = layout.graph
        local = np.full(len(desired), -1, dtype=np.intp)
        local[queries] = np.arange(len(queries))
        pairs = np.flatnonzero(local[graph.pair_query] >= 0)
        tasks, self._first, self._pair_task = np.unique(
            graph.pair_task[pairs], return_index=True, return_inverse=True
        )
        self._pair_query = local[graph.pair_query[pairs]]
        self._cost = AccuracyCost(cost.fixed[tasks], cost.slope[tasks], cost.most[tasks])
        self._goal = self._cost.required(np.ones(len(tasks)))
        self._floor = graph.over_queries(desired, active)[tasks]  # what others want of them
        self._desired = desired[queries]
        place = np.full(len(graph.tasks), -1, dtype=np.intp)
        place[tasks] = np.arange(len(tasks))
        mine = np.flatnonzero(place[layout.task] >= 0)
        self._task = place[layout.task[mine]]  # by instance
        self._worker = layout.worker[mine]

    def rise(self, left: Floats) -> tuple[Floats, Floats]:
        """Raise accuracies together, until none can rise any more."""
        rising = np.ones(len(self._desired), dtype=bool)
        used = self._used(self._desired)
        for _ in range(STEPS):
            involved = np.logical_or.reduceat(rising[self._pair_query], self._first)
            wanted = np.where(involved, np.maximum(self._goal - used, 0.0), 0.0)
            shares = split_evenly(wanted[self._task], self._worker, left)
            # Instances of a task are alike: what the scarcest worker gives one, all can use.
            granted = np.full(len(used), np.inf)
            np.minimum.at(granted, self._task, shares)
            reachable = self._cost.obtained(used + granted)
            least = np.full(len(rising), np.inf)
            np.minimum.at(least, self._pair_query, reachable[self._pair_task])
            risen = np.where(rising, np.maximum(least, self._desired), self._desired)
            now_used = self._used(risen)
            more = (now_used - used)[self._task]
            spent = np.bincount(self._worker, weights=more, minlength=len(left))
            left = np.maximum(left - spent, 0.0)
            rising &= (risen - self._desired > ENOUGH) & (risen < 1.0)
            self._desired, used = risen, now_used
            if not rising.any():
                break
        return self._desired, left

    def _used(self, desired: Floats) -> Floats:
        """Return by task the cores of an instance."""
        wanted = np.maximum.reduceat(desired[self._pair_query], self._first)
        return self._cost.required(np.maximum(wanted, self._floor))


def split_evenly(wanted: Floats, worker: Ints, left: Floats) -> Floats:
    """Split each worker's cores among its instances, no more to any than it wants (Algorithm 3).

    >>> split_evenly(np.array([1.0, 10.0, 3.0]), np.array([0, 0, 1]), np.array([6.0, 2.0]))
    array([1., 5., 2.])
    """
    if not len(wanted):
        return wanted
    order = np.lexsort((wanted, worker))
    ranked, group = wanted[order], worker[order]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    sizes = np.diff(starts, append=len(group))
    before = np.cumsum(ranked) - ranked
    before -= np.repeat(before[starts], sizes)
    behind = np.repeat(starts + sizes, sizes) - np.arange(len(group))
    # If all with smaller wishes are served, the rest gets so much each; the level is the largest.
    each = np.maximum(left[group] - before, 0.0) / behind
    level = np.maximum.reduceat(each, starts)
    shares = np.empty_like(wanted)
    shares[order] = np.minimum(ranked, np.repeat(level, sizes))
    return shares
