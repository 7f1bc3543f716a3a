"""From desired accuracies to the probability with which each shedder keeps a row."""

from dataclasses import dataclass

import numpy as np

from slackwater.quality.graph import Bools, Floats, Graph


@dataclass(frozen=True)
class Keep:
    """Probabilities that a row is kept (equations 14 and 15)."""

    tasks: Floats  # by task: the accuracy it will have
    sources: Floats  # by source, in the order of Graph.sources: where rows come in
    edges: Floats  # by edge: between producer and consumer


def keep(graph: Graph, desired: Floats, active: Bools) -> Keep:
    """Drop rows as early as nobody wants them.

    All inputs of a task come to the same accuracy: what a producer has more for others is shed on
    the way.

    >>> from slackwater.quality.graph import Task
    >>> graph = Graph([Task("in", ("a", "b")), Task("a"), Task("b")])
    >>> found = keep(graph, np.array([0.4, 0.8]), np.array([True, True]))
    >>> found.sources.tolist(), found.edges.tolist()
    ([0.8], [0.5, 1.0])
    """
    tasks = graph.over_queries(desired, active)
    given, wanted = tasks[graph.edges[:, 0]], tasks[graph.edges[:, 1]]
    edges = np.divide(wanted, given, out=np.zeros_like(wanted), where=given > 0)
    return Keep(tasks, tasks[graph.sources], edges)
