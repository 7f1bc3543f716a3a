"""Klink's decisions from scripted situations."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater import policies
from slackwater.core import (
    Deadlines,
    InputStream,
    Memory,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Snapshot,
    UsageError,
    Window,
)
from slackwater.core.model import Outlook

NOW = 1000.0


def query(
    name: str,
    end_s: float,
    *,
    swept: bool = False,
    since_s: float = NOW - 1,
    priority: float = 1.0,
    slide_s: float = 3.0,
    **more: object,
) -> QueryState:
    """A query at the gate whose next window ends at ``end_s``; ``swept``: it is to be emitted."""
    deadlines = Deadlines(
        (Window("tumbling", slide_s, slide_s, offset_s=end_s % slide_s),),
        (InputStream("feed", "t", watermark_delay_s=0.3),),
    )
    # Its last batch read what there was, the newest event 20 ms old.
    start_s = end_s + 0.33 if swept else min(since_s - 0.2, end_s + 0.2)
    known = {
        "batches": 9,
        "rows": 9000,
        "batch_fixed_s": 0.15,
        "batch_empty_s": 0.08,
        "batch_start_s": start_s,
        "watermark_s": end_s - slide_s + 0.01,
        "next_watermark_s": end_s + 0.01 if swept else start_s - 0.32,
        "state_rows": 100,
    }
    metrics = QueryMetrics(**(known | more))  # type: ignore[arg-type]
    spec = QuerySpec(name, priority=priority, deadlines=deadlines)
    return QueryState(spec, "waiting", since_s, since_s - 0.21, 9, metrics)


def decide(
    *queries: QueryState, slots: int = 1, memory: Memory | None = None, **parameters: object
):  # type: ignore[no-untyped-def]
    policy = policies.load("klink", **parameters)
    return policy.decide(Snapshot(NOW, slots, queries, memory))


def admitted(schedule) -> list[str]:  # type: ignore[no-untyped-def]
    return [admission.query for admission in schedule.admissions]


def test_a_sweep_waits_for_its_watermark_and_says_when() -> None:
    schedule = decide(query("early", end_s=NOW + 0.5))
    assert admitted(schedule) == []
    assert schedule.wake_at_s == pytest.approx(NOW + 0.8, abs=0.05)  # its end plus the delay


def test_a_sweep_whose_watermark_arrived_is_admitted() -> None:
    schedule = decide(query("due", end_s=NOW - 0.5), query("early", end_s=NOW + 0.5))
    assert admitted(schedule) == ["due"]
    figures = schedule.admissions[0].figures
    assert figures.stage == "sweep"
    assert figures.window_end_s == pytest.approx(NOW - 0.5)
    assert figures.slack_s == pytest.approx(-0.18 - 0.23, abs=0.01)
    assert figures.cost_s == pytest.approx(0.23)


def test_an_emit_goes_before_sweeps_of_its_age_and_reads_nothing() -> None:
    schedule = decide(query("sweep", end_s=NOW - 0.7), query("emit", end_s=NOW - 0.5, swept=True))
    assert admitted(schedule) == ["emit"]
    assert schedule.admissions[0].row_limit == 0


def test_a_late_emit_sweeps_the_next_window_too() -> None:
    late = query("late", end_s=NOW - 3.5, swept=True)  # the next window ended 0.5 s ago
    assert decide(late).admissions[0].row_limit is None


def test_an_emit_that_found_nothing_to_do_may_read() -> None:
    policy = policies.load("klink")
    one = query("emit", end_s=NOW - 0.5, swept=True)
    assert policy.decide(Snapshot(NOW, 1, (one,))).admissions[0].row_limit == 0
    again = replace(one, admitted_s=NOW, since_s=NOW + 0.02)
    assert policy.decide(Snapshot(NOW + 0.03, 1, (again,))).admissions == ()
    assert policy.decide(Snapshot(NOW + 0.1, 1, (again,))).admissions[0].row_limit is None


def test_of_two_sweeps_the_older_goes_first() -> None:
    schedule = decide(query("b-young", end_s=NOW - 0.4), query("a-old", end_s=NOW - 1.4))
    assert admitted(schedule) == ["a-old"]
    schedule = decide(query("a-young", end_s=NOW - 0.4), query("b-old", end_s=NOW - 1.4))
    assert admitted(schedule) == ["b-old"]


def test_priority_orders_those_that_are_due() -> None:
    schedule = decide(query("old", end_s=NOW - 1.4), query("vip", end_s=NOW - 0.4, priority=5))
    assert admitted(schedule) == ["vip"]


def test_a_query_without_deadline_takes_what_is_left() -> None:
    plain = QueryState(QuerySpec("plain"), "waiting", NOW - 1, None, 0, QueryMetrics(batches=3))
    assert admitted(decide(plain, query("due", end_s=NOW - 0.5))) == ["due"]
    assert admitted(decide(plain, query("early", end_s=NOW + 0.5))) == ["plain"]


def test_a_drain_must_pay_and_must_not_hold_up_a_sweep() -> None:
    heavy = {"batch_per_row_s": 1e-4, "backlog_rows": 400.0, "arrival_rate": 4000.0, "batch_s": 0.2}
    alone = decide(query("heavy", end_s=NOW + 2.0, **heavy))
    assert [a.figures.stage for a in alone.admissions] == ["drain"]
    near = query("near", end_s=NOW + 0.3)
    assert admitted(decide(query("heavy", end_s=NOW + 2.0, **heavy), near)) == []
    assert admitted(decide(query("heavy", end_s=NOW + 2.0, **heavy), near, slots=2)) == ["heavy"]
    light = heavy | {"batch_per_row_s": 1e-6}
    assert admitted(decide(query("light", end_s=NOW + 2.0, **light))) == []


def test_under_pressure_those_that_free_most_go_first() -> None:
    full = Memory(used_bytes=85, limit_bytes=100)
    small = query("small", end_s=NOW - 1.5, swept=True)
    large = query("large", end_s=NOW - 0.5, swept=True, state_rows=5000)
    assert admitted(decide(small, large)) == ["small"]  # the older
    assert admitted(decide(small, large, memory=full)) == ["large"]
    policy = policies.load("klink-no-memory")
    schedule = policy.decide(Snapshot(NOW, 1, (small, large), full))
    assert admitted(schedule) == ["small"]


def test_a_backlog_is_read_in_pieces_that_fit() -> None:
    memory = Memory(used_bytes=400_000_000, limit_bytes=1_000_000_000)
    behind = query("behind", end_s=NOW - 60, backlog_rows=2e6)
    limit = decide(behind, slots=2, memory=memory).admissions[0].row_limit
    assert limit is not None
    assert 100_000 <= limit <= 200_000
    few = query("few", end_s=NOW - 60, backlog_rows=2e3)
    assert decide(few, slots=2, memory=memory).admissions[0].row_limit is None


def test_a_query_that_is_behind_needs_not_wait_for_an_estimate() -> None:
    behind = query("behind", end_s=NOW - 60, backlog_rows=5e5, batch_start_s=NOW - 1.2)
    assert admitted(decide(behind)) == ["behind"]


def test_what_is_not_known_yet_is_waited_for_a_moment() -> None:
    unseen = query("unseen", end_s=NOW - 0.5, since_s=NOW - 0.01)
    unseen = replace(unseen, admitted_s=NOW - 0.1)  # a batch later than the last one known
    schedule = decide(unseen)
    assert admitted(schedule) == []
    assert schedule.wake_at_s is not None
    assert schedule.wake_at_s <= NOW + 0.05


def test_queries_that_go_are_forgotten_and_their_place_is_anothers() -> None:
    policy = policies.load("klink")
    first = query("first", end_s=NOW - 0.5)
    second = query("second", end_s=NOW - 1.5)
    policy.decide(Snapshot(NOW, 1, (first, second)))
    policy.decide(Snapshot(NOW, 1, (second,)))
    third = query("third", end_s=NOW - 2.5)
    assert admitted(policy.decide(Snapshot(NOW, 1, (second, third)))) == ["third"]


steps = st.tuples(
    st.permutations(range(5)), st.integers(0, 5), st.sets(st.integers(0, 4)), st.floats(0, 3)
)


@settings(max_examples=60, deadline=None)
@given(st.lists(steps, max_size=8))
def test_looking_only_at_changes_decides_as_looking_at_all(
    script: list[tuple[list[int], int, set[int], float]],
) -> None:
    quick, thorough = policies.load("klink"), policies.load("klink")
    states = {number: query(f"q{number}", NOW - 0.4 * number) for number in range(5)}
    now_s = NOW
    for order, present, changed, passed_s in script:
        now_s += passed_s
        for number in changed:  # a batch has run meanwhile
            fresh = query(
                f"q{number}", now_s - 0.2 * number, since_s=now_s, batches=9 + len(script)
            )
            states[number] = replace(states[number], metrics=fresh.metrics, since_s=now_s)
        seen = tuple(states[number] for number in order[:present])
        copies = tuple(replace(state) for state in seen)  # equal, but not the same
        first = quick.decide(Snapshot(now_s, 2, seen))
        assert first == thorough.decide(Snapshot(now_s, 2, copies))


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"confidence": 1.5}, "confidence must lie between 0 and 1"),
        ({"memory_bound": 0.0}, "memory_bound must lie between 0 and 1"),
        ({"estimator": "calibrate"}, "calibrated"),
    ],
)
def test_wrong_parameters_are_one_clear_line(parameters: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        policies.load("klink", **parameters)


def test_also_an_overdue_query_reads_only_what_fits() -> None:
    memory = Memory(used_bytes=400_000_000, limit_bytes=1_000_000_000)
    behind = query("behind", end_s=NOW - 60, since_s=NOW - 6, backlog_rows=2e6)
    admission = decide(behind, slots=2, memory=memory).admissions[0]
    assert "close to its maximum" in admission.reason
    assert admission.row_limit is not None
    assert admission.row_limit <= 200_000


def test_limits_never_make_a_backlog() -> None:
    full = Memory(used_bytes=99, limit_bytes=100)
    busy = query("busy", end_s=NOW - 0.5, backlog_rows=90_000.0, arrival_rate=10_000.0)
    limit = decide(busy, memory=full).admissions[0].row_limit
    assert limit is not None
    assert limit >= 3 * 10_000


def test_who_has_much_ahead_of_it_elsewhere_goes_first() -> None:
    near, far = query("near", NOW - 0.9), query("far", NOW - 0.9)
    far = replace(far, metrics=replace(far.metrics, beyond=Outlook(fixed_s=0.5)))
    assert [each.query for each in decide(near, far).admissions] == ["far"]
