"""The guard against harm, on a machine that is scripted."""

from slackwater.core import Snapshot
from slackwater.engines.spark.control.guard import LOOK_S, OPEN_S, Guard


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
