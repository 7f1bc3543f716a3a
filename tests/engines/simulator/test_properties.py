"""What holds of both execution models whatever the fleet, the policy and the seed."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from slackwater import policies
from slackwater.core import Controller, VirtualClock
from slackwater.engines.simulator.arrivals import Bursts, Feed, SimulatedArrivals
from slackwater.engines.simulator.cluster import SimulatedCluster
from slackwater.engines.simulator.jvm import Heap, WarmUp
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.operators import OperatorEngine
from slackwater.engines.simulator.pipeline import PipelineOperator, PipelineQuery
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.traffic import Traffic
from slackwater_bench.klink.ideal import first_arrival_us

START_S = 1_000_000.0
SECONDS = 12.0
POLICIES = ["spark", "fcfs", "round-robin", "highest-rate", "streambox", "queue-size", "klink"]

few_runs = settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
bursts = st.none() | st.builds(
    Bursts, peak=st.floats(1.2, 3.0), lasts_s=st.floats(0.3, 1.0), every_s=st.floats(3.0, 6.0)
)

# -- one event at a time --------------------------------------------------------------------------


class Pipelines(NamedTuple):
    """A fleet, and where it runs."""

    queries: list[PipelineQuery]
    policy: str
    cores: int
    heap: Heap
    cold: bool
    seed: int


@st.composite
def pipelines(draw: st.DrawFn) -> Pipelines:
    operators = st.builds(
        PipelineOperator,
        name=st.just("o"),
        cost_s=st.floats(1e-6, 6e-5),
        selectivity=st.floats(0.05, 1.0),
        blocked_s=st.sampled_from([0.0, 0.0, 1e-5]),
        keeps=st.sampled_from([False, False, True]),
    )
    length = draw(st.integers(2, 4))
    queries = [
        PipelineQuery(
            name=f"q{number}",
            operators=tuple(draw(st.lists(operators, min_size=length, max_size=length))),
            rate=draw(st.sampled_from([50.0, 2000.0, 20_000.0])),
            bursts=draw(bursts),
            window_s=draw(st.sampled_from([1.0, 3.0])),
            phase_s=draw(st.floats(0.0, 1.0)),
            starts_s=draw(st.sampled_from([0.0, 2.3])),
            streams=draw(st.integers(1, 3)),
        )
        for number in range(draw(st.integers(2, 6)))
    ]
    limit = draw(st.sampled_from([20e6, 1e9]))
    return Pipelines(
        queries,
        draw(st.sampled_from(POLICIES)),
        draw(st.integers(1, 3)),
        Heap(1.2 * limit, limit, 1e9),
        draw(st.booleans()),
        draw(st.integers(0, 1000)),
    )


def run(case: Pipelines) -> OperatorEngine:
    clock, policy = VirtualClock(START_S), policies.load(case.policy, seed=case.seed)
    engine = OperatorEngine(
        clock,
        case.queries,
        cores=case.cores,
        execution="cores" if policy.gated else "threads",
        heap=case.heap,
        warm_up=WarmUp(cold=3.0, settles_s=2.0) if case.cold else None,
        seed=case.seed,
    )
    Controller(engine, policy, engine, clock, remember=1).run(
        lambda: clock.now() >= START_S + SECONDS
    )
    return engine


@few_runs
@given(pipelines())
def test_events_are_neither_lost_nor_made(case: Pipelines) -> None:
    engine = run(case)
    streamed_s = engine.stream_now_s  # their own time, in which nobody is held back
    feeds = [Feed(q.rate, START_S + q.starts_s, q.bursts) for q in case.queries]
    sent = SimulatedArrivals(feeds, case.seed).total(streamed_s)
    np.testing.assert_allclose(engine._done[:, 0], sent, rtol=1e-6, atol=1e-3)
    assert np.all(np.diff(engine._done, axis=1) <= 1e-6), "an operator ran ahead of the one before"


@few_runs
@given(pipelines())
def test_no_window_comes_out_before_its_watermark_or_twice(case: Pipelines) -> None:
    engine = run(case)
    queries = {query.name: query for query in case.queries}
    assert len(engine.results) == len({(r.query, r.end_s) for r in engine.results})
    for result in engine.results:
        assert result.done_s >= result.end_s + queries[result.query].delay_s - 1e-6
        assert result.done_s <= engine.clock.now() + 1e-6
    for name in queries:
        ends = [result.end_s for result in engine.results if result.query == name]
        assert ends == sorted(ends)


@few_runs
@given(pipelines())
def test_no_core_idles_while_it_has_work_and_none_works_twice(case: Pipelines) -> None:
    calm = [replace(query, bursts=None, starts_s=0.0) for query in case.queries]
    rows = [tuple(replace(o, blocked_s=0.0) for o in query.operators) for query in calm]
    calm = [replace(query, operators=row) for query, row in zip(calm, rows, strict=True)]
    ample = Heap(total_bytes=1e15, limit_bytes=1e15)  # while memory is collected nothing runs
    engine = run(case._replace(queries=calm, cold=False, heap=ample))
    for use in engine.usage:
        assert use.busy_cores <= case.cores + 1e-9
    behind = np.count_nonzero(engine._done[:, 0] - engine._done[:, -1] > 1000)
    if behind >= case.cores + 1:  # more queries have long queues than there are cores
        assert engine.usage[-1].busy_cores == pytest.approx(case.cores, rel=0.05)


@few_runs
@given(pipelines())
def test_the_same_seed_gives_the_same_pipelines(case: Pipelines) -> None:
    first, second = run(case), run(case)
    assert first.results == second.results
    assert first.usage == second.usage


@few_runs
@given(pipelines(), st.booleans())
def test_nothing_is_lost_between_nodes(case: Pipelines, forwarding: bool) -> None:
    many = [policies.load(case.policy, seed=case.seed) for _ in range(2)]
    clock = VirtualClock(START_S)
    queries = [replace(q, operators=(*q.operators, *q.operators)[:4]) for q in case.queries]
    cluster = SimulatedCluster(
        clock,
        queries,
        many,
        forwarding=forwarding,
        cores=case.cores,
        heap=case.heap,
        execution="cores" if many[0].gated else "threads",
        seed=case.seed,
    )
    cluster.run(START_S + SECONDS / 2)
    delays_s = {query.name: query.delay_s for query in queries}
    for node in cluster.nodes:
        for place, (other, there) in node.downstream.items():
            arrived = other._done[there, 0] + other._came[there]
            assert arrived == pytest.approx(node.moved_on(place), rel=1e-9, abs=1e-6)
    for result in cluster.results:
        assert result.done_s >= result.end_s + delays_s[result.query] - 1e-6


@given(bursts, st.integers(0, 1000))
def test_bursts_bring_events_forward_and_back_but_not_away(which: Bursts | None, seed: int) -> None:
    arrivals = SimulatedArrivals([Feed(100.0, 0.0, which)], seed)
    times = np.linspace(0.0, 400.0, 1000)
    totals = np.array([arrivals.total(time_s)[0] for time_s in times])
    assert np.all(np.diff(totals) >= 0)
    assert np.diff(totals).max() <= 100.0 * (which.peak if which else 1.0) * times[1] + 1e-6
    assert totals[-1] == pytest.approx(40_000, rel=0.35)
    for position in (0.0, 1000.0, 20_000.0):
        came_s = arrivals.came_s(0, position)
        assert np.interp(came_s, times, totals) == pytest.approx(position, abs=130)


# -- micro-batches --------------------------------------------------------------------------------


class Batches(NamedTuple):
    """A fleet, and where it runs."""

    queries: list[SimulatedQuery]
    policy: str
    cores: float
    driver_cores: float | None
    slots: int


@st.composite
def batches(draw: st.DrawFn) -> Batches:
    costs = st.builds(
        BatchCosts,
        fixed_s=st.floats(0.02, 0.3),
        empty_s=st.floats(0.01, 0.2),
        per_row_s=st.floats(1e-6, 1e-4),
        waiting_s=st.sampled_from([0.0, 0.05]),
        poll_s=st.just(0.02),
        spread=st.sampled_from([0.0, 0.3]),
        driver=st.sampled_from([0.0, 0.5]),
    )
    rates = st.sampled_from(["50", "1000", "burst:200:2000:every=4:for=1"])
    queries = [
        SimulatedQuery(
            name=f"q{number}",
            traffic=Traffic(start_s=START_S, rate=draw(rates), seed=draw(st.integers(0, 99))),
            costs=draw(costs),
            trigger_s=draw(st.sampled_from([None, None, 0.7])),
            window_s=draw(st.sampled_from([1.0, 3.0])),
            phase_s=draw(st.floats(0.0, 1.0)),
            output_mode=draw(st.sampled_from(["append", "append", "update"])),
        )
        for number in range(draw(st.integers(1, 5)))
    ]
    return Batches(
        queries,
        draw(st.sampled_from(POLICIES)),
        draw(st.sampled_from([0.7, 1.0, 2.0])),
        draw(st.sampled_from([None, None, 0.5])),
        draw(st.integers(1, 4)),
    )


def run_batches(case: Batches) -> MicroBatchEngine:
    clock, policy = VirtualClock(START_S), policies.load(case.policy, seed=1)
    engine = MicroBatchEngine(
        clock,
        case.queries,
        cores=case.cores,
        driver_cores=case.driver_cores,
        slots=case.slots,
        gated=policy.gated,
    )
    Controller(engine, policy, engine, clock, remember=1).run(
        lambda: clock.now() >= START_S + SECONDS
    )
    return engine


@few_runs
@given(batches())
def test_every_row_is_read_once(case: Batches) -> None:
    engine = run_batches(case)
    for query in case.queries:
        metrics = engine._executions[query.name].observer.metrics
        seen = sum(rows for rows, _ in engine._executions[query.name].durations)
        assert metrics.rows == seen
        if metrics.batch_start_s is not None:  # read and left over are what had arrived
            arrived = query.traffic.timeline().count(round(metrics.batch_start_s * 1e6))
            assert seen + round(metrics.backlog_rows or 0) == arrived


@few_runs
@given(batches())
def test_no_window_comes_out_before_the_event_that_completes_it(case: Batches) -> None:
    engine = run_batches(case)
    queries = {query.name: query for query in case.queries}
    for result in engine.results:
        query = queries[result.query]
        due_us = round((result.end_s + query.delay_s) * 1e6)
        sweep_us = first_arrival_us(query.traffic.timeline(), due_us)
        assert sweep_us is not None
        assert result.done_s * 1e6 >= sweep_us
    for query in case.queries:  # all windows, one after the other
        ends = [result.end_s for result in engine.results if result.query == query.name]
        wanted = [query.window.next_end(START_S)]
        while len(wanted) < len(ends):
            wanted.append(query.window.next_end(wanted[-1]))
        assert ends == wanted[: len(ends)]


@few_runs
@given(batches())
def test_running_batches_keep_the_cores_busy(case: Batches) -> None:
    """Where nobody waits for disks or the driver, cores work exactly as long as batches run."""
    alone = [replace(q, costs=replace(q.costs, driver=0.0, waiting_s=0.0)) for q in case.queries]
    engine = run_batches(case._replace(queries=alone, driver_cores=None))
    running: Counter[str] = Counter()
    busy_s, before_s = 0.0, START_S
    for at_s, name, phase in engine.log:
        busy_s += (at_s - before_s) * min(case.cores, running.total())
        running[name], before_s = int(phase == "running"), at_s
        if engine.gated:
            assert running.total() <= case.slots
    busy_s += (engine.clock.now() - before_s) * min(case.cores, running.total())
    assert engine.cores.busy_s == pytest.approx(busy_s, abs=0.01)


@few_runs
@given(batches())
def test_the_same_seed_gives_the_same_batches(case: Batches) -> None:
    first, second = run_batches(case), run_batches(case)
    assert first.log == second.log
    assert first.results == second.results
