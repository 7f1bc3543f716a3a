"""StreamBox: the closest window end, until the watermark has passed it."""

import pytest

from slackwater import policies
from slackwater.core import (
    Deadlines,
    InputStream,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Snapshot,
    Window,
)
from slackwater.core.model import Phase


def query(
    name: str,
    offset_s: float | None,
    watermark_s: float | None = 99.0,
    phase: Phase = "waiting",
    since_s: float = 100.0,
) -> QueryState:
    found = Deadlines()
    if offset_s is not None:
        window = Window("tumbling", size_s=10.0, slide_s=10.0, offset_s=offset_s)
        found = Deadlines((window,), (InputStream("feed", "time", 0.3),))
    spec = QuerySpec(name, max_wait_s=100, deadlines=found)
    return QueryState(spec, phase, since_s, metrics=QueryMetrics(watermark_s=watermark_s))


def admitted(policy: policies.Policy, *queries: QueryState, slots: int = 1) -> list[str]:
    decision = policy.decide(Snapshot(100.1, slots, queries))
    return [admission.query for admission in decision.admissions]


def test_the_closest_window_end_first_and_no_deadline_last() -> None:
    queries = query("none", None), query("far", 7.0), query("close", 2.0)
    assert admitted(policies.load("streambox"), *queries, slots=3) == ["close", "far", "none"]


def test_the_chosen_stays_until_its_watermark_has_passed_the_end() -> None:
    policy = policies.load("streambox")
    a, b = query("a", 2.0), query("b", 3.0)  # ends at 102 and 103
    assert admitted(policy, a, b) == ["a"]
    sooner = query("c", 1.0)  # at 101, but it came too late
    assert admitted(policy, query("a", 2.0, watermark_s=101.5), b, sooner) == ["a"]
    assert admitted(policy, query("a", 2.0, watermark_s=102.0), b, sooner) == ["c"]


def test_its_slot_is_kept_for_the_moment_it_needs_to_come_back() -> None:
    policy = policies.load("streambox")
    assert admitted(policy, query("a", 2.0), query("b", 3.0)) == ["a"]
    away = query("a", 2.0, phase="idle", since_s=100.0)
    assert admitted(policy, away, query("b", 3.0)) == []
    wake_s = policy.decide(Snapshot(100.0, 1, (away, query("b", 3.0)))).wake_at_s
    assert wake_s == pytest.approx(100.25)
    gone = query("a", 2.0, phase="idle", since_s=99.0)
    assert admitted(policy, gone, query("b", 3.0)) == ["b"]


def test_a_chosen_query_that_left_the_fleet_is_forgotten() -> None:
    policy = policies.load("streambox")
    assert admitted(policy, query("a", 2.0), query("b", 3.0)) == ["a"]
    assert admitted(policy, query("b", 3.0)) == ["b"]


def test_as_many_are_chosen_as_there_are_slots() -> None:
    policy = policies.load("streambox")
    queries = [query(name, offset) for name, offset in (("a", 2.0), ("b", 3.0), ("c", 4.0))]
    assert admitted(policy, *queries, slots=2) == ["a", "b"]
    running = query("a", 2.0, phase="running")
    assert admitted(policy, running, *queries[1:], slots=2) == ["b"]


def test_without_a_watermark_nobody_is_kept() -> None:
    policy = policies.load("streambox")
    assert admitted(policy, query("new", 1.0, watermark_s=None)) == ["new"]
    assert admitted(policy, query("new", 5.0, watermark_s=None), query("b", 3.0)) == ["b"]


def test_the_reason_has_the_figure() -> None:
    policy = policies.load("streambox")
    view = Snapshot(100.0, 1, (query("a", 2.0),))
    assert policy.decide(view).admissions[0].reason == "closest window end, +2.00 s from now"
    again = policy.decide(view).admissions[0].reason
    assert again == "stays until its window end, 3.00 s ahead of its watermark"
