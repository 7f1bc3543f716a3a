"""How long one cycle of the quality controller takes over many tasks."""

from typing import Any

import numpy as np
from rich.table import Table

from slackwater.common.subprocesses import collect_seldom
from slackwater.core.clock import Timer
from slackwater.quality import Cluster, Graph, Layout, Load, QualityController, Task
from slackwater.statistics.intervals import summary
from slackwater_bench.tables import figures_table

PRIORITIES = 10
CORES = 4.0
LOAD = 1.6  # of what the workers have, so that there is something to shed


def measure(tasks: int, workers: int, repeats: int, seed: int = 1) -> dict[str, Any]:
    """Time cycles over applications of five tasks: a source, two steps, two queries."""
    collect_seldom()
    chance = np.random.default_rng(seed)
    graph = Graph(_tasks(tasks, chance))
    layout = _layout(graph, workers, chance)
    names = tuple(f"worker-{number}" for number in range(workers))
    cluster = Cluster(names, np.full(workers, CORES), chance.uniform(0, 0.5, workers))
    controller = QualityController()
    took_ms, shed, moves = [], 0, 0
    for repeat in range(repeats):
        load = _load(layout, cluster, chance)
        timer = Timer()
        decision = controller.cycle(1e6 * repeat, cluster, layout, load)
        took_ms.append(1e3 * timer.elapsed_s)
        shed += int(np.count_nonzero(decision.desired < 1))
        moves += len(decision.moves)
    return {
        "tasks": tasks,
        "instances": len(layout.task),
        "workers": workers,
        "priorities": PRIORITIES,
        "queries_shed": shed / repeats,
        "moves": moves / repeats,
        "milliseconds": summary(took_ms),
    }


def table(result: dict[str, Any]) -> Table:
    columns = "tasks, instances, workers, shed, moves, mean ms, p50, p99"
    grid = figures_table("one cycle of the quality controller", columns, names=0)
    counts = (str(result[name]) for name in ("tasks", "instances", "workers"))
    means = (f"{result[name]:.1f}" for name in ("queries_shed", "moves"))
    times = (f"{result['milliseconds'][name]:.2f}" for name in ("mean", "p50", "p99"))
    grid.add_row(*counts, *means, *times)
    return grid


def _tasks(count: int, chance: np.random.Generator) -> list[Task]:
    found: list[Task] = []
    for first in range(0, count - count % 5, 5):
        source, left, right, near, far = (f"t{first + place}" for place in range(5))
        found += [Task(source, (left, right)), Task(left, (near,)), Task(right, (near, far))]
        for query in (near, far):
            priority = float(chance.integers(PRIORITIES))
            found.append(Task(query, (), priority, float(chance.uniform(0.05, 0.3))))
    found += [Task(f"t{number}", (), 1.0, 0.1) for number in range(len(found), count)]
    return found


def _layout(graph: Graph, workers: int, chance: np.random.Generator) -> Layout:
    """Place tasks on workers; every fourth has two instances."""
    first = np.arange(len(graph.tasks), dtype=np.intp)
    task = np.concatenate([first, first[::4]])
    number = np.concatenate([np.zeros(len(first)), np.ones(len(first[::4]))]).astype(np.intp)
    return Layout(graph, task, chance.integers(workers, size=len(task)), number)


def _load(layout: Layout, cluster: Cluster, chance: np.random.Generator) -> Load:
    graph, instances = layout.graph, len(layout.task)
    each = LOAD * CORES * len(cluster.names) / instances
    cpu = chance.uniform(0.2, 1.8, len(graph.tasks)) * each
    rate = np.zeros(len(graph.tasks))
    rate[graph.sources] = chance.uniform(100, 1000, len(graph.sources))
    offered = rate.copy()
    for layer in graph.layers:
        np.add.at(offered, graph.edges[layer, 1], offered[graph.edges[layer, 0]])
    return Load.of(
        layout,
        in_rate=(offered / layout.instances)[layout.task],
        cpu=cpu[layout.task],
        source_rate=rate,
        out_rate=offered[graph.edges[:, 0]],
    )
