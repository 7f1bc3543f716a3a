"""Applications as graphs of tasks: what a user states of queries holds for all they live on.

A task without a consumer is a *query*. Arrays with an entry for each task, query or edge follow
the order of :attr:`Graph.tasks`, :attr:`Graph.queries` and :attr:`Graph.edges`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.core.errors import UsageError

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Task:
    """One step of an application."""

    name: str
    feeds: tuple[str, ...] = ()  # names of its consumers; a query has none
    priority: float = 1.0  # of a query: larger is more important
    min_accuracy: float = 1.0  # of a query: the least part of the input that must be processed

    def __post_init__(self) -> None:
        if not 0 <= self.min_accuracy <= 1:
            raise UsageError(
                f"{self.name}: min_accuracy is {self.min_accuracy:g}; it is between 0 and 1"
            )
        if not self.priority >= 0:
            raise UsageError(f"{self.name}: priority must not be negative ({self.priority:g})")


class Graph:
    """The tasks of all applications.

    >>> graph = Graph([Task("source", ("far", "near")), Task("far", priority=5), Task("near")])
    >>> [graph.tasks[task].name for task in graph.queries]
    ['far', 'near']
    >>> graph.over_queries(graph.priority, np.ones(2, bool)).tolist()  # equation 1
    [5.0, 5.0, 1.0]
    """

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.tasks = tuple(tasks)
        self.index = {task.name: number for number, task in enumerate(self.tasks)}
        if len(self.index) < len(self.tasks):
            raise UsageError("two tasks have the same name")
        self.edges = self._edges()  # (edges, 2): producer, consumer
        fed = np.zeros(len(self.tasks), dtype=bool)
        fed[self.edges[:, 1]] = True
        feeding = np.zeros(len(self.tasks), dtype=bool)
        feeding[self.edges[:, 0]] = True
        self.sources: Ints = np.flatnonzero(~fed)
        self.queries: Ints = np.flatnonzero(~feeding)
        self.priority: Floats = np.array([self.tasks[q].priority for q in self.queries])
        self.min_accuracy: Floats = np.array([self.tasks[q].min_accuracy for q in self.queries])
        # Edge numbers such that all edges into a producer come in an earlier layer.
        self.layers = self._by_depth()
        self.pair_task, self.pair_query = self._pairs()
        self._first_pair: Ints = np.searchsorted(self.pair_task, np.arange(len(self.tasks)))

    def over_queries(self, values: Floats, active: Bools, nothing: float = 0.0) -> Floats:
        """Return for each task the largest value of its active queries (equations 1, 2, 5, 14).

        Parameters
        ----------
        values, active
            By query.
        nothing
            For tasks none of whose queries is active.
        """
        if not len(self.tasks):
            return np.zeros(0)
        shown = np.where(active, values, -np.inf)[self.pair_query]
        largest: Floats = np.maximum.reduceat(shown, self._first_pair)
        return np.where(np.isfinite(largest), largest, nothing)

    def _edges(self) -> Ints:
        found = []
        for number, task in enumerate(self.tasks):
            for consumer in task.feeds:
                if consumer not in self.index:
                    raise UsageError(f"{task.name} feeds {consumer!r}, which is not there")
                found.append((number, self.index[consumer]))
        return np.array(found, dtype=np.intp).reshape(-1, 2)

    def _by_depth(self) -> tuple[Ints, ...]:
        depth = np.zeros(len(self.tasks), dtype=np.intp)
        producers, consumers = self.edges[:, 0], self.edges[:, 1]
        for _ in range(len(self.tasks) + 1):
            deeper = depth.copy()
            np.maximum.at(deeper, consumers, depth[producers] + 1)
            if np.array_equal(deeper, depth):
                levels = depth[consumers]
                return tuple(np.flatnonzero(levels == level) for level in np.unique(levels))
            depth = deeper
        raise UsageError("tasks feed each other in a circle")

    def _pairs(self) -> tuple[Ints, Ints]:
        """Return every task with each of its queries, by task."""
        place = {int(task): number for number, task in enumerate(self.queries)}
        consumers: list[list[int]] = [[] for _ in self.tasks]
        for producer, consumer in self.edges.tolist():
            consumers[producer].append(consumer)
        reached: list[set[int]] = [set() for _ in self.tasks]
        for task in place:
            reached[task].add(place[task])
        for layer in reversed(self.layers):
            for producer, consumer in self.edges[layer].tolist():
                reached[producer] |= reached[consumer]
        pairs = [(task, query) for task, found in enumerate(reached) for query in sorted(found)]
        columns = np.array(pairs, dtype=np.intp).reshape(-1, 2)
        return columns[:, 0].copy(), columns[:, 1].copy()
