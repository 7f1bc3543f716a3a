"""What was measured: workers, where instances run, what they use and what they get through."""

from dataclasses import dataclass

import numpy as np

from slackwater.quality.graph import Floats, Graph, Ints


@dataclass(frozen=True)
class Cluster:
    """The workers; arrays with an entry for each."""

    names: tuple[str, ...]
    cores: Floats  # nCores(tm)
    others: Floats  # cores that other processes of its machine use: cpu(tm) − tCpu(tm)

    @property
    def available(self) -> Floats:
        """Cores for our tasks: the first lines of Algorithm 1."""
        return np.maximum(self.cores - self.others, 0.0)


@dataclass(frozen=True)
class Layout:
    """Which instance is of which task and on which worker; arrays by instance."""

    graph: Graph
    task: Ints
    worker: Ints
    number: Ints  # of the instance within its task

    @property
    def instances(self) -> Ints:
        """How many each task has."""
        return np.bincount(self.task, minlength=len(self.graph.tasks))

    def key(self, instance: int) -> tuple[str, int]:
        """Return a name of an instance, wherever it runs."""
        return self.graph.tasks[self.task[instance]].name, int(self.number[instance])


@dataclass(frozen=True)
class Load:
    """One look at everything. Rates are rows per second, CPU is in cores."""

    in_rate: Floats  # by instance: rows processed
    cpu: Floats  # by instance: cpuMetric(i)
    source_rate: Floats  # by task: rows that arrive for a source; 0 for others
    out_rate: Floats  # by edge: rows produced for the consumer, before any are shed
    fixed: Floats  # by task: what an instance costs however few rows it gets
    most: Floats  # by task: cores that one instance can use at most
    backlog: Floats | None = None  # by task: rows that wait before it

    @classmethod
    def of(
        cls,
        layout: Layout,
        *,
        in_rate: Floats,
        cpu: Floats,
        source_rate: Floats,
        out_rate: Floats,
        fixed: Floats | None = None,
        most: Floats | None = None,
        backlog: Floats | None = None,
    ) -> "Load":
        """Make one; what is not said is as published: nothing fixed, one core at most."""
        tasks = len(layout.graph.tasks)
        return cls(
            in_rate,
            cpu,
            source_rate,
            out_rate,
            np.zeros(tasks) if fixed is None else fixed,
            np.ones(tasks) if most is None else most,
            backlog,
        )

    def slowest(self, layout: Layout) -> Ints:
        """Return by task its instance with the least input rate (equation 6)."""
        order = np.lexsort((self.in_rate, layout.task))
        first = np.searchsorted(layout.task[order], np.arange(len(layout.graph.tasks)))
        found: Ints = order[np.minimum(first, len(order) - 1)]
        return found
