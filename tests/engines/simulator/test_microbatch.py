"""The simulated engine: what goes in comes out, once, later, and the same again."""

from dataclasses import replace
from itertools import pairwise

import pytest

from slackwater import policies
from slackwater.core import Controller, VirtualClock
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.query import BatchCosts, Execution, Result
from slackwater.traffic import Traffic
from slackwater_bench.klink.ideal import first_arrival_us
from tests.simulated import START_S, query, simulate

POLICIES = ["spark", "fcfs", "klink"]


def mean_latency_s(engine: MicroBatchEngine, after_s: float = 15.0) -> float:
    """After some time to learn."""
    counted = [r.latency_s for r in engine.results if r.end_s > START_S + after_s]
    return sum(counted) / len(counted)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_window_comes_out_once_and_in_order(policy: str) -> None:
    fleet = [query(i) for i in range(4)]
    engine, _ = simulate(policy, fleet, 60)
    for each in fleet:
        ends = [result.end_s for result in engine.results if result.query == each.name]
        assert len(ends) >= 17
        wanted = [each.window.next_end(START_S)]
        while len(wanted) < len(ends):
            wanted.append(each.window.next_end(wanted[-1]))
        assert ends == wanted


@pytest.mark.parametrize("policy", POLICIES)
def test_no_result_before_the_event_that_completes_it(policy: str) -> None:
    fleet = {each.name: each for each in (query(i) for i in range(3))}
    engine, _ = simulate(policy, list(fleet.values()), 40)
    assert engine.results
    for result in engine.results:
        each = fleet[result.query]
        timeline = each.traffic.timeline()
        sweep_us = first_arrival_us(timeline, round((result.end_s + each.delay_s) * 1e6))
        assert sweep_us is not None
        assert result.done_s * 1e6 > sweep_us


def test_rows_are_read_once() -> None:
    each = query(3)
    engine, _ = simulate("fcfs", [each], 30)
    metrics = engine.collect(0.0).queries[0].metrics
    timeline = each.traffic.timeline()
    assert metrics.batch_start_s is not None
    assert metrics.rows == timeline.count(round(metrics.batch_start_s * 1e6))


def test_a_limited_batch_leaves_the_rest() -> None:
    execution = Execution(query(1))
    assert execution.begin(START_S + 40, row_limit=100) is not None
    assert 0 < execution.rows <= 100
    execution.end(START_S + 41)
    metrics = execution.observer.metrics
    assert metrics.rows + (metrics.backlog_rows or 0) == execution.stream.arrived(START_S + 40)


def test_the_same_again() -> None:
    first, second = (simulate("klink", [query(i) for i in range(5)], 30)[0] for _ in range(2))
    assert first.log == second.log
    assert first.results == second.results


def test_cores_are_never_busier_than_they_can_be() -> None:
    engine, _ = simulate("spark", [query(i, costs=BatchCosts(fixed_s=0.5)) for i in range(8)], 20)
    passed_s = engine.clock.now() - START_S
    assert 0.9 * 2 * passed_s < engine.cores.busy_s <= 2 * passed_s + 1e-6  # nobody idles


def test_klink_needs_two_batches_a_window_and_is_ahead_under_load() -> None:
    fleet = [query(i, rate=1000, costs=BatchCosts()) for i in range(10)]
    klink, fcfs = (simulate(policy, fleet, 60, slots=3)[0] for policy in ("klink", "fcfs"))
    windows = len(klink.results)
    batches = sum(state.metrics.batches for state in klink.collect(0.0).queries)
    assert batches < 2.5 * windows
    assert mean_latency_s(klink) < 0.8 * mean_latency_s(fcfs)


def test_a_window_takes_two_batches_the_sweep_and_the_emit() -> None:
    execution = Execution(query(0))
    execution.begin(START_S + 1.0, None)
    assert execution.end(START_S + 1.1) == []
    end_s = execution.query.window.next_end(START_S)
    assert execution.begin(end_s + 1.0, None) is not None  # reads past the end and the delay
    assert execution.end(end_s + 1.1) == []
    assert execution.begin(end_s + 1.2, row_limit=0) is not None  # runs with that watermark
    assert execution.end(end_s + 1.3) == [Result("q0", end_s, end_s + 1.3)]
    assert execution.begin(end_s + 1.4, row_limit=0) is None


def test_a_batch_that_takes_longer_than_its_trigger_is_followed_at_once() -> None:
    engine, _ = simulate("spark", [query(0, trigger_s=0.5, costs=BatchCosts(fixed_s=0.7))], 20)
    ends = [at_s for at_s, _, phase in engine.log if phase == "idle"]
    starts = [at_s for at_s, _, phase in engine.log if phase == "running"]
    at_once = [start for end, start in zip(ends, starts[1:], strict=False) if start == end]
    assert len(at_once) > len(ends) / 2


def test_a_fixed_trigger_waits_for_its_time() -> None:
    engine, _ = simulate("spark", [query(0, trigger_s=2.0)], 30)
    starts = [at_s for at_s, _, phase in engine.log if phase == "running"]
    assert starts[1:]
    assert all(at_s % 2.0 == pytest.approx(0.0, abs=1e-6) for at_s in starts)


def test_a_driver_with_few_cores_of_its_own_holds_everyone_up() -> None:
    few, many = (with_driver(cores) for cores in (0.25, 8.0))
    for engine in (few, many):  # half of all work is the driver's: both do as much
        assert engine.driver is not None
        assert engine.driver.busy_s == pytest.approx(engine.cores.busy_s, rel=0.2)
    assert mean_latency_s(few) > 1.3 * mean_latency_s(many)


def with_driver(driver_cores: float) -> MicroBatchEngine:
    clock, policy = VirtualClock(START_S), policies.load("klink")
    fleet = [query(i, costs=BatchCosts(driver=0.5)) for i in range(8)]
    engine = MicroBatchEngine(clock, fleet, cores=8, driver_cores=driver_cores, slots=12)
    Controller(engine, policy, engine, clock).run(lambda: clock.now() >= START_S + 40)
    return engine


def test_one_batch_a_window_takes_half_the_batches_and_gives_the_same_windows() -> None:
    costs = BatchCosts(fixed_s=0.11, empty_s=0.08, per_row_s=2e-5)
    ran, ends = {}, {}
    for one_batch in (False, True):
        fleet = [query(i, one_batch=one_batch, costs=costs) for i in range(6)]
        engine, _ = simulate("klink", fleet, 60, slots=3)
        ends[one_batch] = sorted(
            (r.query, r.end_s) for r in engine.results if r.end_s < START_S + 55
        )
        ran[one_batch] = len(engine.durations()), mean_latency_s(engine)
    assert ends[True] == ends[False]
    assert ran[True][0] < 0.6 * ran[False][0]
    assert ran[True][1] < ran[False][1]


def test_nobody_raises_a_watermark_where_nobody_is_held() -> None:
    ran = []
    for one_batch in (False, True):
        engine, _ = simulate("spark", [query(i, one_batch=one_batch) for i in range(3)], 20)
        ran.append((engine.durations(), engine.results))
    assert ran[0] == ran[1]


def test_a_batch_that_needs_a_later_watermark_does_not_begin() -> None:
    each = query(2, one_batch=True)
    execution = Execution(each)
    end_s = each.window.next_end(START_S)
    assert execution.begin(end_s, None, watermark_s=end_s) is None
    assert execution.rows == 0
    assert execution.begin(end_s + each.delay_s + 1, None, watermark_s=end_s) is not None
    assert [result.end_s for result in execution.end(end_s + each.delay_s + 2)] == [end_s]


def test_a_query_without_windows_shows_every_row_and_no_result() -> None:
    each = query(1, windowed=False, one_batch=True)
    assert not each.spec.deadlines.has_deadline
    assert not each.spec.one_batch
    engine, _ = simulate("klink", [each], 30)
    execution = engine.executions()[each.name]
    assert engine.results == []
    shown_s = [done_s for done_s, _ in execution.shown]
    assert max(b - a for a, b in pairwise(shown_s)) < 2.0
    assert all(rows for rows, _ in execution.durations)  # no watermark, no batch without rows


def test_a_target_is_kept_with_fewer_batches() -> None:
    eager, lazy = query(1, windowed=False), query(2, windowed=False, target_s=4.0)
    engine, _ = simulate("klink", [eager, lazy], 60)
    batches = {name: len(found.shown) for name, found in engine.executions().items()}
    assert 0 < 3 * batches["q2"] < batches["q1"]


@pytest.mark.parametrize("cores", [4, 0.2])
def test_a_batch_that_waits_for_its_sink_gives_its_slot_back(cores: float) -> None:
    """Also on a machine that is full."""
    sleeping = [query(i, windowed=False, costs=BatchCosts(waiting_s=60.0)) for i in (1, 2)]
    clock, policy = VirtualClock(START_S), policies.load("fcfs")
    fleet = [*sleeping, query(3, windowed=False), query(4, windowed=False)]
    engine = MicroBatchEngine(clock, fleet, cores=cores, slots=3)
    controller = Controller(engine, policy, engine, clock, remember=1)
    seen = []

    def looked() -> bool:
        seen.append(sum(state.in_sink for state in engine.collect(clock.now()).queries))
        return clock.now() >= START_S + 8.0

    controller.run(looked)
    assert max(seen) == 2
    controller.run(lambda: clock.now() >= START_S + 90.0)
    assert engine.executions()["q1"].durations[0][1] > 60.0


def test_a_silent_source_brings_nothing() -> None:
    traffic = Traffic(start_s=START_S, stop_s=START_S)
    each = replace(query(1), traffic=traffic)
    for policy in POLICIES:
        engine, _ = simulate(policy, [each], 20)
        assert engine.results == []
        assert engine.durations() == []
