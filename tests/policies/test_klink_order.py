"""The order of windows that wait together: alike in cost, by age; results that are begun, first."""

from dataclasses import replace
from statistics import fmean

from slackwater import policies
from slackwater.core import QueryMetrics, QuerySpec, QueryState, Snapshot
from slackwater.engines.simulator.prediction import MEASURED, START_S, predict
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.traffic import Traffic
from tests.policies.fleet_script import windows

NOW_S = 10_002.0  # windows of 10 s have ended at 10,000


def waiting(name: str, cost_s: float, *, swept: bool = False, **spec: float) -> QueryState:
    """Return a query whose window of two batches has ended; ``swept``: one of them has run."""
    metrics = QueryMetrics(
        batches=5,
        rows=5000,
        batch_s=cost_s,
        batch_fixed_s=cost_s,
        batch_empty_s=cost_s,
        batch_start_s=NOW_S - 1.0 if swept else 9_995.0,
        watermark_s=9_991.0,
        next_watermark_s=10_000.5 if swept else 9_994.7,
    )
    told = QuerySpec(name, max_wait_s=100.0, deadlines=windows(10.0), **spec)
    return QueryState(told, "waiting", NOW_S - 0.5, metrics=metrics)


def order(*queries: QueryState) -> list[str]:
    policy = policies.load("klink")
    busy = QueryState(QuerySpec("busy"), "running", NOW_S)
    policy.decide(Snapshot(NOW_S - 2.0, 1, (*queries, busy)))  # all are met; no slot is free
    changed = [replace(query, since_s=NOW_S - 0.4) for query in queries]
    view = Snapshot(NOW_S, len(queries), tuple(changed))
    return [admission.query for admission in policy.decide(view).admissions]


def test_what_seems_to_cost_a_little_more_does_not_come_last() -> None:
    """Durations tell what ran beside a batch: equal queries would always have the same order."""
    alike = [waiting(f"q{n}", 0.2 + 0.05 * n) for n in range(4)]
    assert order(*alike) == ["q3", "q2", "q1", "q0"]  # who needs longest must begin first


def test_what_costs_a_multiple_comes_after_the_others() -> None:
    huge, *small = (waiting("huge", 5.0), *(waiting(f"q{n}", 0.2) for n in range(4)))
    assert order(huge, *small)[-1] == "huge"


def test_a_result_that_is_begun_is_ended_first() -> None:
    others = [waiting(f"q{n}", 0.1) for n in range(3)]
    assert order(*others, waiting("begun", 0.3, swept=True))[0] == "begun"


def test_a_table_is_as_old_as_what_it_shows() -> None:
    """Its promise is as broken as a window's result is late, though it is due only now."""
    windows_late = [waiting(f"q{n}", 0.2) for n in range(4)]  # by 1.7 s
    table = table_of(NOW_S - 1.9, batch_start_s=NOW_S - 1.8, target_s=2.0)
    assert order(table, *windows_late)[0] == "table"


def test_a_loose_promise_is_not_more_urgent_than_a_strict_one() -> None:
    """It is due while minutes are left until it breaks."""
    late = [waiting(f"q{n}", 0.2) for n in range(4)]
    early = [replace(one, metrics=replace(one.metrics, batch_start_s=NOW_S - 9.0)) for one in late]
    table = table_of(NOW_S - 560.0, batch_start_s=NOW_S - 560.0, target_s=600.0)
    assert order(table, *early)[-1] == "table"


def table_of(shown_s: float, *, batch_start_s: float, target_s: float) -> QueryState:
    """Return a query without windows whose newest row is of that time."""
    metrics = QueryMetrics(
        batches=5,
        rows=5000,
        batch_s=0.2,
        batch_fixed_s=0.2,
        batch_start_s=batch_start_s,
        max_event_s=shown_s,
    )
    spec = QuerySpec("table", max_wait_s=9000.0, target_s=target_s)
    return QueryState(spec, "waiting", batch_start_s + 0.3, metrics=metrics)


def full_machine(seed: int) -> list[SimulatedQuery]:
    """Return queries whose rows cost much: who is late has more of them."""
    costs = BatchCosts(0.16, 0.11, 1e-4, 0.03, beside=0.49, spread=0.4)
    return [
        SimulatedQuery(
            name=f"q{n}",
            traffic=Traffic(start_s=START_S, rate="1000", seed=1000 * seed + n),
            costs=costs,
            window_s=2.0,
            slide_s=1.0,
        )
        for n in range(6)
    ]


def test_two_batches_a_window_take_no_longer_than_in_the_published_order() -> None:
    """On a full machine; the mean of four seeds, because one alone says little."""
    found, published = (
        [
            predict(full_machine(seed), policy, MEASURED.machine(2), warmup_s=20, seconds=60)
            for seed in range(1, 5)
        ]
        for policy in ("klink", "klink-paper")
    )
    assert fmean(r.mean_s for r in found) < 1.06 * fmean(r.mean_s for r in published)
    assert fmean(r.p99_s for r in found) < 1.2 * fmean(r.p99_s for r in published)
