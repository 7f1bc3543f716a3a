"""Which table is refreshed next, in virtual time."""

import random
import threading
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core import VirtualClock
from slackwater.engines.spark.queries import timetable as module
from slackwater.engines.spark.queries.timetable import (
    BACK_OFF_S,
    JITTER,
    LONGEST_BACK_OFF_S,
    Timetable,
)


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(1000.0)


@pytest.fixture
def timetable(clock: VirtualClock) -> Timetable:
    return Timetable(clock, random.Random(3))


def refresh(timetable: Timetable, *names: str) -> None:
    for name in names:
        timetable.begin(name)
        timetable.succeed(name)


def test_a_table_is_due_at_once_and_then_every_so_often(
    clock: VirtualClock, timetable: Timetable
) -> None:
    timetable.add("a", 60.0)
    assert timetable.due() == ["a"]
    refresh(timetable, "a")
    assert timetable.due() == []
    assert timetable.next_s() == 60.0
    clock.sleep(59.0)
    assert (timetable.due(), timetable.next_s()) == ([], 1.0)
    clock.sleep(1.0)
    assert timetable.due() == ["a"]


def test_the_stalest_comes_first_measured_by_its_own_interval(
    clock: VirtualClock, timetable: Timetable
) -> None:
    for name, every_s in (("hourly", 3600.0), ("minutely", 60.0), ("daily", 86400.0)):
        timetable.add(name, every_s)
    refresh(timetable, "hourly", "minutely", "daily")
    clock.sleep(2 * 86400.0)
    assert timetable.due() == ["minutely", "hourly", "daily"]


def test_who_was_never_refreshed_is_the_stalest(clock: VirtualClock, timetable: Timetable) -> None:
    timetable.add("old", 1.0)
    refresh(timetable, "old")
    clock.sleep(1e6)
    timetable.add("new", 1e6)
    timetable.add("newer and important", 1e6, priority=5.0)
    assert timetable.due() == ["newer and important", "new", "old"]


def test_priorities_weigh(clock: VirtualClock, timetable: Timetable) -> None:
    timetable.add("stale", 10.0)
    timetable.add("important", 10.0, priority=4.0)
    refresh(timetable, "stale")
    clock.sleep(10.0)
    refresh(timetable, "important")
    clock.sleep(10.0)
    assert timetable.due() == ["important", "stale"]  # 4 × 1 against 1 × 2


def test_age_counts_from_the_beginning_of_a_run(clock: VirtualClock, timetable: Timetable) -> None:
    """A run reads what was there as it began."""
    timetable.add("a", 60.0)
    timetable.begin("a")
    clock.sleep(25.0)
    timetable.succeed("a")
    assert timetable.age_s("a") == 25.0
    assert timetable.next_s() == 35.0


def test_nobody_is_due_while_it_runs(clock: VirtualClock, timetable: Timetable) -> None:
    timetable.add("a", 10.0)
    timetable.begin("a")
    clock.sleep(100.0)
    assert timetable.due() == []
    timetable.succeed("a")
    assert timetable.due() == ["a"]


def test_failures_back_off_and_success_forgets_them(
    clock: VirtualClock, timetable: Timetable
) -> None:
    timetable.add("bad", 10.0)
    for failures in range(1, 15):
        timetable.begin("bad")
        timetable.fail("bad")
        assert timetable.due() == []
        pause_s = min(LONGEST_BACK_OFF_S, BACK_OFF_S * 2 ** (failures - 1))
        assert abs(timetable.next_s() - pause_s) <= JITTER * pause_s
        found = timetable.freshness("bad")
        assert found is not None
        assert (found.state, found.failures) == ("retrying", failures)
        clock.sleep(timetable.next_s())
        assert timetable.due() == ["bad"]
    refresh(timetable, "bad")
    found = timetable.freshness("bad")
    assert found is not None
    assert (found.state, found.failures) == ("fresh", 0)
    assert timetable.next_s() == 10.0


def test_two_that_fail_together_do_not_come_back_together(timetable: Timetable) -> None:
    pauses = set()
    for name in "abcdef":
        timetable.add(name, 10.0)
        timetable.begin(name)
        timetable.fail(name)
        pauses.add(timetable.next_s([name]))
    assert len(pauses) == 6


def test_an_interrupted_run_is_neither(clock: VirtualClock, timetable: Timetable) -> None:
    timetable.add("a", 10.0)
    refresh(timetable, "a")
    clock.sleep(10.0)
    timetable.begin("a")
    timetable.interrupt("a")
    assert timetable.due() == ["a"]
    assert timetable.age_s("a") == 10.0


def test_what_a_restart_knows_of_the_last_refresh(
    clock: VirtualClock, timetable: Timetable
) -> None:
    timetable.add("lately", 60.0, refreshed_s=970.0)
    timetable.add("long ago", 60.0, refreshed_s=0.0)
    timetable.add("clock went back", 60.0, refreshed_s=2000.0)
    assert timetable.due() == ["long ago"]
    assert timetable.next_s(["lately"]) == 30.0
    assert timetable.next_s(["clock went back"]) == 60.0


def test_what_is_shown(clock: VirtualClock, timetable: Timetable) -> None:
    def shown() -> tuple[str, float | None]:
        found = timetable.freshness("a")
        assert found is not None
        return found.state, found.refreshed_s

    timetable.add("a", 60.0)
    assert shown() == ("due", None)
    timetable.begin("a")
    assert shown() == ("running", None)
    timetable.succeed("a")
    assert shown() == ("fresh", 1000.0)
    clock.sleep(60.0)
    assert shown() == ("due", 1000.0)
    timetable.remove("a")
    assert timetable.freshness("a") is None
    timetable.succeed("a")  # of a run that ends later: nobody's
    assert timetable.due() == []


def test_a_table_that_is_removed_while_another_thread_notes_its_run_stays_away(
    timetable: Timetable, monkeypatch: pytest.MonkeyPatch
) -> None:
    timetable.add("a", 60.0)
    remover = threading.Thread(target=timetable.remove, args=("a",))

    def meanwhile(table: module.Table, **changes: object) -> module.Table:
        remover.start()
        remover.join(timeout=0.2)  # it may have to wait
        return replace(table, **changes)  # type: ignore[arg-type]

    monkeypatch.setattr(module, "replace", meanwhile)
    timetable.begin("a")
    remover.join(timeout=30)
    assert timetable.freshness("a") is None


@given(
    st.lists(
        st.tuples(st.integers(1, 10**5), st.integers(0, 10), st.integers(0, 10**6)),
        min_size=1,
        max_size=30,
    )
)
def test_the_order_is_that_of_weighted_staleness(tables: list[tuple[int, int, int]]) -> None:
    """Against the slow, obvious version."""
    clock = VirtualClock(2e6)
    timetable = Timetable(clock)
    worth = {}
    for number, (every_s, priority, age_s) in enumerate(tables):
        name = str(number)
        timetable.add(name, every_s, priority, refreshed_s=2e6 - age_s)
        if age_s >= every_s:
            worth[name] = priority * age_s / every_s
    found = timetable.due()
    assert set(found) == set(worth)
    assert [worth[name] for name in found] == sorted(worth.values(), reverse=True)
