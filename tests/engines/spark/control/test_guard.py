"""The guard against harm, on a machine that is scripted."""

import os
from pathlib import Path

import pytest

from slackwater.core import Snapshot
from slackwater.engines.spark.control.guard import LOOK_S, OPEN_S, Guard
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
            self.guard.look(self.now_s, Snapshot(self.now_s, 3), held_up, free)
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
        guard.look(look * LOOK_S, Snapshot(look * LOOK_S, 3), held_up=9, free=0, cores=2)
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


def test_where_nobody_can_tell_the_load_nothing_is_given() -> None:
    def hidden() -> float:
        raise FileNotFoundError("/proc/stat")

    guard = Guard(2, hidden)
    for look in range(20):
        guard.look(look * LOOK_S, Snapshot(0.0, 3), held_up=4, free=0)
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
