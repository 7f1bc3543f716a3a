"""The guard against harm, on a machine that is scripted."""

import os
from pathlib import Path

import pytest

from slackwater.core import QueryMetrics, QuerySpec, QueryState, Snapshot
from slackwater.engines.spark.control.guard import LATELY_S, LOOK_S, OPEN_S, Guard
from slackwater.engines.spark.control.service import ControllerService, ControllerSettings


class Watched:
    """A guard, and a machine of two cores whose load is told look by look."""

    def __init__(self) -> None:
        self.used_s = self.now_s = 0.0
        self.guard = Guard(2, lambda: self.used_s)

    def look(self, looks: int, busy: float, held_up: int, free: int = 0) -> int:
        for _ in range(looks):
            self.now_s += LOOK_S
            self.used_s += busy * 2 * LOOK_S
            waiting = {f"q{number}": self.now_s for number in range(held_up)}
            self.guard.look(self.now_s, Snapshot(self.now_s, 3), waiting, free)
        return self.guard.extra


def test_idle_cores_while_work_waits_give_slots() -> None:
    watched = Watched()
    assert watched.look(1, busy=0.2, held_up=4) == 0
    assert watched.look(2, busy=0.2, held_up=4) == 1
    assert watched.look(4, busy=0.2, held_up=4) == 3


def test_a_full_machine_an_empty_queue_or_a_free_slot_gives_none() -> None:
    assert Watched().look(20, busy=0.95, held_up=4) == 0
    assert Watched().look(20, busy=0.2, held_up=0) == 0
    assert Watched().look(20, busy=0.2, held_up=4, free=1) == 0


def test_cores_that_spark_does_not_use_are_not_idle() -> None:
    used_s = iter(range(100))
    guard = Guard(16, lambda: float(next(used_s)))  # two of sixteen cores are busy
    for look in range(40):
        guard.look(
            look * LOOK_S,
            Snapshot(look * LOOK_S, 3),
            held_up=dict.fromkeys("abc", 0.0),
            free=0,
            cores=2,
        )
    assert guard.extra == 0
    assert not guard.is_open(40 * LOOK_S)


def test_what_was_given_is_taken_back_when_it_is_not_needed() -> None:
    watched = Watched()
    watched.look(7, busy=0.2, held_up=4)
    assert watched.look(100, busy=0.95, held_up=4) == 0


def test_if_slots_do_not_help_nobody_is_held_for_a_while() -> None:
    watched = Watched()
    watched.look(40, busy=0.1, held_up=9)
    assert watched.guard.extra == 6
    assert watched.guard.is_open(watched.now_s)
    assert not watched.guard.is_open(watched.now_s + OPEN_S)


def test_a_clock_that_is_put_back_neither_blinds_it_nor_keeps_gates_open() -> None:
    watched = Watched()
    watched.look(40, busy=0.1, held_up=9)
    an_hour_before_s = watched.now_s - 3600
    assert watched.guard.due(an_hour_before_s)
    assert not watched.guard.is_open(an_hour_before_s)


class Waits:
    """A guard over queries that take a second each, one of which is held up again and again."""

    def __init__(self, priority: float = 1.0) -> None:
        self.guard = Guard(2, lambda: 2 * self.now_s)
        self.now_s, self.admissions = 1000.0, 0
        metrics = QueryMetrics(batch_s=1.0)
        self._others = tuple(
            QueryState(QuerySpec(f"q{number}"), "running", admitted_s=990.0, metrics=metrics)
            for number in range(8)
        )
        self._spec, self._metrics = QuerySpec("held", priority), metrics

    def wait(self, seconds: float) -> bool:
        """Have it wait once; return whether it is let through then."""
        since_s, self.admissions = self.now_s, self.admissions + 1
        held = QueryState(
            self._spec, "waiting", since_s, since_s, self.admissions, metrics=self._metrics
        )
        while self.now_s < since_s + seconds:
            self.now_s += LOOK_S
            snapshot = Snapshot(self.now_s, 3, (held, *self._others))
            self.guard.look(self.now_s, snapshot, {"held": since_s}, free=0)
        return self.guard.lets_through("held", self.now_s)


def test_who_waits_longer_than_unheld_several_times_in_a_row_is_not_held() -> None:
    waits = Waits()
    assert [waits.wait(5.0) for _ in range(3)] == [False, False, True]
    assert "held" in waits.guard.why_let_through(waits.now_s)
    assert not waits.guard.lets_through("q1", waits.now_s)
    assert not waits.guard.lets_through("held", waits.now_s + OPEN_S)
    assert not waits.guard.holds_all(waits.now_s)
    assert not waits.guard.why_let_through(waits.now_s + OPEN_S)


def test_whose_gate_opens_by_itself_again_and_again_is_not_held() -> None:
    """Whatever else is told: nobody had let it in for as long as it may be held."""
    assert not opened_at(1000.0, 1010.0)
    assert opened_at(1000.0, 1010.0, 1020.0)
    assert not opened_at(1000.0, 1000.0 + LATELY_S, 1000.0 + 2 * LATELY_S)  # now and then
    assert not opened_at(1000.0, 1010.0, 1020.0, priority=0.5)  # others are more important


def opened_at(*times_s: float, priority: float = 1.0) -> bool:
    """Return whether a query is let through whose gate has opened by itself at these times."""
    used_s = iter(range(100))
    guard = Guard(2, lambda: float(next(used_s)))
    queries = tuple(QueryState(QuerySpec(*q)) for q in (("q", priority), ("other", 1.0)))
    for at_s in times_s:
        guard.gate_opened("q", at_s)
        for look_s in (at_s, at_s + LOOK_S):
            guard.look(look_s, Snapshot(look_s, 3, queries), {}, free=3)
    assert not guard.lets_through("other", times_s[-1])
    assert not guard.lets_through("q", times_s[-1] + 2 * OPEN_S)
    return guard.lets_through("q", times_s[-1] + LOOK_S)


def test_a_wait_that_plain_spark_explains_is_none_too_many() -> None:
    waits = Waits()
    assert not any(waits.wait(4.0) for _ in range(9))  # nine batches of a second on three slots
    assert [waits.wait(s) for s in (5.0, 5.0, 1.0, 5.0, 5.0)] == [False] * 5


def test_who_is_less_important_than_others_may_wait() -> None:
    waits = Waits(priority=0.5)
    assert not any(waits.wait(9.0) for _ in range(5))


def test_where_nobody_can_tell_the_load_nothing_is_given() -> None:
    def hidden() -> float:
        raise FileNotFoundError("/proc/stat")

    guard = Guard(2, hidden)
    for look in range(20):
        guard.look(look * LOOK_S, Snapshot(0.0, 3), held_up={"q": 0.0}, free=0)
    assert guard.extra == 0


def test_cores_that_are_somebody_else_s_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Workers of a fleet are bound to CPUs of their own: others may idle, and do not help."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    service = ControllerService(ControllerSettings(str(tmp_path / "s"), "fcfs"), lambda: 0.0)
    try:
        assert service.driver.guard is not None
        assert service.driver.guard._cores == 1
    finally:
        service.driver.close()
