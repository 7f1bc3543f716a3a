"""An obvious model of an engine for the controller to steer: rows cost CPU, workers run out."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from hypothesis import strategies as st

from slackwater.quality import Cluster, Graph, Layout, Load, QualityDecision, Task


@dataclass
class Plant:
    """Tasks with a true cost per row, on workers; whatever does not fit is not processed."""

    graph: Graph
    layout: Layout
    cluster: Cluster
    row_cost: np.ndarray  # by task: cores for one row per second
    fixed: np.ndarray  # by task
    rate: np.ndarray  # by task: rows per second that arrive at sources
    kept: np.ndarray = field(init=False)  # by task: accuracy that the shedders aim at
    running: np.ndarray = field(init=False)  # by task

    def __post_init__(self) -> None:
        self.kept = np.ones(len(self.graph.tasks))
        self.running = np.ones(len(self.graph.tasks), bool)

    def needed(self, accuracy: np.ndarray) -> np.ndarray:
        """By task: cores of one instance at these accuracies, by the true costs."""
        rows = self.offered() * accuracy / self.layout.instances
        return (self.fixed + self.row_cost * rows) * self.running

    def offered(self) -> np.ndarray:
        """By task: rows per second at full accuracy; every task hands on what it gets."""
        rates = self.rate.copy()
        for layer in self.graph.layers:
            for producer, consumer in self.graph.edges[layer].tolist():
                rates[consumer] += rates[producer]
        return rates

    def load(self) -> Load:
        """What would be measured now: workers without room slow all that they run alike."""
        wanted = self.needed(self.kept)[self.layout.task]
        total = np.bincount(self.layout.worker, weights=wanted, minlength=len(self.cluster.names))
        speed = np.minimum(1.0, self.cluster.available / np.maximum(total, 1e-12))
        slowed = np.ones(len(self.graph.tasks))
        np.minimum.at(slowed, self.layout.task, speed[self.layout.worker])
        given = self.kept * slowed  # local; the product along the way follows from it
        through = self._through(given)
        rows = through * self.running * self.offered() / self.layout.instances
        cpu = (self.fixed + self.row_cost * rows) * self.running
        producers = self.graph.edges[:, 0]
        out_rate = (through * self.offered())[producers]
        return Load(
            rows[self.layout.task],
            cpu[self.layout.task],
            self.rate,
            out_rate,
            self.fixed,
            np.full(len(self.graph.tasks), 100.0),
        )

    def _through(self, given: np.ndarray) -> np.ndarray:
        through = given.copy()
        for layer in self.graph.layers:
            for producer, consumer in self.graph.edges[layer].tolist():
                through[consumer] = min(through[consumer], through[producer])
        return through

    def obey(self, decision: QualityDecision) -> None:
        """Shedders, moves and stops take effect."""
        self.kept = decision.keep.tasks
        queries = self.running[self.graph.queries]
        names = [self.graph.tasks[q].name for q in self.graph.queries]
        for place, name in enumerate(names):
            queries[place] = (queries[place] or name in decision.resume) and (
                name not in decision.stop
            )
        # A task none of whose queries runs does not run either.
        self.running = self.graph.over_queries(np.ones(len(queries)), queries) > 0
        place = {name: number for number, name in enumerate(self.cluster.names)}
        for move in decision.moves:
            for instance in range(len(self.layout.task)):
                if self.layout.key(instance) == move.instance:
                    self.layout.worker[instance] = place[move.target]


def make_layout(graph: Graph, workers: Sequence[Sequence[int]]) -> Layout:
    """``workers`` has, by task, the worker of each of its instances."""
    rows = [(t, w, n) for t, placed in enumerate(workers) for n, w in enumerate(placed)]
    columns = np.array(rows, dtype=np.intp).reshape(-1, 3)
    return Layout(graph, columns[:, 0].copy(), columns[:, 1].copy(), columns[:, 2].copy())


@st.composite
def plants(draw: st.DrawFn, *, minimums: float = 1.0) -> Plant:
    """Applications of one to four tasks: a source that feeds queries, or a query alone."""
    workers = draw(st.integers(1, 4))
    tasks: list[Task] = []
    for number in range(draw(st.integers(1, 5))):
        queries = [f"a{number}q{place}" for place in range(draw(st.integers(1, 3)))]
        if draw(st.booleans()):
            tasks.append(Task(f"a{number}", tuple(queries)))
        for query in queries:
            priority = float(draw(st.integers(0, 3)))
            least = draw(st.sampled_from([0.0, 0.1, 0.3, 0.6])) * minimums
            tasks.append(Task(query, (), priority, least))
    graph = Graph(tasks)
    instances = [draw(st.lists(st.integers(0, workers - 1), min_size=1, max_size=2)) for _ in tasks]
    layout = make_layout(graph, instances)
    cores = np.array([draw(st.sampled_from([1.0, 2.0, 4.0])) for _ in range(workers)])
    cluster = Cluster(tuple(f"w{w}" for w in range(workers)), cores, np.zeros(workers))
    row_cost = np.array([draw(st.sampled_from([0.001, 0.004, 0.01])) for _ in tasks])
    fixed = np.array([draw(st.sampled_from([0.0, 0.05])) for _ in tasks])
    rate = np.zeros(len(tasks))
    for source in graph.sources.tolist():
        rate[source] = draw(st.sampled_from([10.0, 100.0, 400.0]))
    return Plant(graph, layout, cluster, row_cost, fixed, rate)
