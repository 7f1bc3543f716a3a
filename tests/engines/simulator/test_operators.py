"""The engine that runs events one at a time: nothing is lost, nothing is early, cores are used."""

import numpy as np
import pytest

from slackwater import policies
from slackwater.core import Controller, VirtualClock
from slackwater.engines.simulator.jvm import Heap, WarmUp
from slackwater.engines.simulator.operators import OperatorEngine, least_cores
from slackwater.engines.simulator.pipeline import PipelineOperator, PipelineQuery

START_S = 1_000_000.0
POLICIES = ["spark", "fcfs", "round-robin", "klink"]

CHAIN = (
    PipelineOperator("read", 10e-6),
    PipelineOperator("filter", 3e-6, selectivity=1 / 3),
    PipelineOperator("join", 18e-6),
    PipelineOperator("window", 30e-6),
)


def fleet(number: int, **options: object) -> list[PipelineQuery]:
    return [
        PipelineQuery(name=f"q{i}", operators=CHAIN, phase_s=0.7 * i % 3, **options)  # type: ignore[arg-type]
        for i in range(number)
    ]


def run(
    policy: str, queries: list[PipelineQuery], seconds: float, cores: int = 2, **options: object
) -> OperatorEngine:
    clock, chosen = VirtualClock(START_S), policies.load(policy)
    execution = "cores" if chosen.gated else "threads"
    engine = OperatorEngine(clock, queries, cores=cores, execution=execution, **options)  # type: ignore[arg-type]
    Controller(engine, chosen, engine, clock).run(lambda: clock.now() >= START_S + seconds)
    return engine


@pytest.mark.parametrize("policy", POLICIES)
def test_what_came_in_is_queued_or_done(policy: str) -> None:
    queries = fleet(6)
    engine = run(policy, queries, 12)
    cycles = len(engine.usage)
    assert engine._done[:, 0] == pytest.approx(cycles * engine._step_s * 10_000)  # none was held
    assert np.all(np.diff(engine._done, axis=1) <= 1e-6)  # no operator is ahead of the one before
    assert np.all(engine._done >= 0)


@pytest.mark.parametrize("policy", POLICIES)
def test_results_come_in_order_and_never_before_the_watermark(policy: str) -> None:
    queries = {query.name: query for query in fleet(6)}
    engine = run(policy, list(queries.values()), 20)
    assert len(engine.results) > 6 * 4
    for name, query in queries.items():
        ends = [result.end_s for result in engine.results if result.query == name]
        assert ends == sorted(set(ends))
        for result in engine.results:
            if result.query == name:
                assert result.done_s >= result.end_s + query.delay_s


@pytest.mark.parametrize("policy", POLICIES)
def test_cores_work_while_there_is_work(policy: str) -> None:
    queries = fleet(16)
    assert least_cores(queries) > 2
    engine = run(policy, queries, 12)
    busy = [use.busy_cores for use in engine.usage[10:]]
    assert min(busy) == pytest.approx(2.0, rel=0.02)


def test_the_same_seed_gives_the_same_results() -> None:
    first, second = (run("klink", fleet(6), 12) for _ in range(2))
    assert first.results == second.results


def test_a_full_heap_holds_sources_back_and_takes_cores_for_collections() -> None:
    small = Heap(total_bytes=300e6, limit_bytes=200e6)
    engine = run("fcfs", fleet(16), 30, heap=small)
    assert max(use.memory_bytes for use in engine.usage) < 1.2 * small.limit_bytes
    assert engine._sources.held_s > 0
    assert engine.usage[-1].collecting > engine.usage[1].collecting
    assert engine.usage[-1].events < max(use.events for use in engine.usage)


def test_least_slack_first_halves_latency_where_memory_bounds_the_backlog() -> None:
    queries, heap = (
        fleet(16),
        Heap(total_bytes=20e9, limit_bytes=200e6),
    )  # twice what 2 cores can do
    slack, arrival = (run(policy, queries, 40, heap=heap) for policy in ("klink-no-memory", "fcfs"))
    means = [np.mean([r.latency_s for r in engine.results[60:]]) for engine in (slack, arrival)]
    assert means[0] < 0.5 * means[1]


def test_memory_management_leads_out_of_a_full_heap() -> None:
    """The engine starts cold; whoever lets memory fill then is kept there by collections."""
    heap = Heap(total_bytes=1.75e9, limit_bytes=1.46e9, walked_bytes_per_s=0.6e9)
    queries = synthetic_like_ysb(7)
    full, managed = (
        run(policy, queries, 220, warm_up=WarmUp(), heap=heap) for policy in ("fcfs", "klink")
    )
    assert full.usage[-1].memory_bytes > 0.9 * heap.limit_bytes
    assert managed.usage[-1].memory_bytes < 0.2 * heap.limit_bytes
    late = [np.mean([use.events for use in e.usage[-400:]]) for e in (managed, full)]
    assert late[0] > 1.2 * late[1]


def synthetic_like_ysb(number: int) -> list[PipelineQuery]:
    operators = (
        PipelineOperator("source", 5e-6),
        PipelineOperator("filter", 1e-6, selectivity=1 / 3),
        PipelineOperator("count", 53e-6),
    )
    return [
        PipelineQuery(name=f"q{i}", operators=operators, phase_s=0.4 * i % 3, rate=8_500.0)
        for i in range(number)
    ]
