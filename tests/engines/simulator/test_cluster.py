"""Several nodes: nothing is lost between them, and what they tell each other helps."""

import numpy as np
import pytest

from slackwater import policies
from slackwater.core import UsageError, VirtualClock
from slackwater.engines.simulator.cluster import SimulatedCluster
from tests.engines.simulator.test_operators import START_S, fleet


def run(
    policy: str, nodes: int, queries: int, seconds: float, **options: object
) -> SimulatedCluster:
    many = [policies.load(policy) for _ in range(nodes)]
    execution = "cores" if many[0].gated else "threads"
    clock = VirtualClock(START_S)
    cluster = SimulatedCluster(clock, fleet(queries), many, execution=execution, cores=2, **options)
    cluster.run(START_S + seconds)
    return cluster


@pytest.mark.parametrize("policy", ["spark", "fcfs", "klink"])
@pytest.mark.parametrize("forwarding", [True, False])
def test_what_leaves_a_node_comes_to_the_next(policy: str, forwarding: bool) -> None:
    cluster = run(policy, 3, 9, 12, forwarding=forwarding)
    for node in cluster.nodes:
        for place, (other, there) in node.downstream.items():
            on_the_way = other._came[there]
            assert other._done[there, 0] + on_the_way == pytest.approx(node.moved_on(place))


@pytest.mark.parametrize("forwarding", [True, False])
def test_results_come_in_order_and_never_before_the_watermark(forwarding: bool) -> None:
    queries = {query.name: query for query in fleet(9)}
    cluster = run("klink", 3, 9, 20, forwarding=forwarding)
    assert len(cluster.results) > 9 * 4
    for result in cluster.results:
        assert result.done_s >= result.end_s + queries[result.query].delay_s
    for name in queries:
        ends = [result.end_s for result in cluster.results if result.query == name]
        assert ends == sorted(set(ends))


def test_a_forwarded_watermark_is_known_before_it_is_there() -> None:
    cluster = run("fcfs", 2, 40, 3)  # so many that events queue before both nodes
    ahead = 0
    for _ in range(40):
        cluster.run(cluster.clock.now() + 0.06)
        for node in cluster.nodes:
            for place, mark in node.arrived:
                other, there = node.downstream[place]
                assert other._known_marks[there] == mark
                ahead += mark not in other._marks[there]
    assert ahead > 10


def test_the_same_seed_gives_the_same_results() -> None:
    first, second = (run("klink", 2, 6, 8) for _ in range(2))
    assert first.results == second.results


def test_one_node_is_no_cluster() -> None:
    with pytest.raises(UsageError, match="at least two"):
        run("klink", 1, 2, 1)


def test_when_one_node_is_full_all_sources_wait() -> None:
    cluster = run("fcfs", 2, 40, 1)
    for node in cluster.nodes:
        assert np.all(node._sources.held_s == cluster.nodes[0]._sources.held_s)
