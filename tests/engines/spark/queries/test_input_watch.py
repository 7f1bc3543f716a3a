"""Questions to sources of queries that found nothing, without Spark."""

import logging
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from slackwater.core.clock import RealClock
from slackwater.engines.spark.queries import input_watch
from slackwater.engines.spark.queries.input_watch import InputWatch
from slackwater.engines.spark.sources.arrivals import Untold
from slackwater.ipc.messages import INPUTS_LAST_S, Inputs
from tests.waiting import eventually


@dataclass
class Gate:
    """A query that stands at its gate, and its only source."""

    seq: int = 2
    arrived_s: float = 0.0
    stands_there: bool = True
    quick: bool = True
    rows: int | None = 0  # None: nobody can tell
    fails: bool = False  # to answer, for now
    answers: threading.Event | None = None  # before that no answer comes
    asked: int = 0
    counted: int = 0
    findable: bool = True

    def stands(self, now_s: float) -> bool:
        return self.stands_there

    def mark(self) -> int:
        self.asked += 1
        if self.answers is not None:
            self.answers.wait(30)
        if self.fails:
            raise OSError("no such broker")
        if self.rows is None:
            raise Untold("nobody can tell")
        return self.rows

    def rows_left(self) -> int | None:
        self.counted += 1
        if self.answers is not None:
            self.answers.wait(30)
        return self.rows

    def forget(self) -> None:
        """Keep nothing."""


class Finder:
    """Finds the source of a gate in its place."""

    closed = False
    found = 0

    def find(self, execution: Gate) -> tuple[Gate, ...]:
        self.found += 1
        if not execution.findable:
            raise Untold("nobody can tell")
        return (execution,)

    def close(self) -> None:
        self.closed = True


class Fleet:
    """A watch, and what it has told."""

    def __init__(self) -> None:
        self.told: list[Inputs] = []
        self.finder: Any = Finder()
        self.watch = InputWatch(self.told.append, RealClock(), self.finder)

    def add(self, name: str, gate: Any) -> None:
        self.watch.watch(name, name, gate, gate)

    def look(self, name: str, gate: Gate) -> None:
        """Let a trigger find nothing, and wait until an answer after that was taken."""
        gate.seq += 1
        self.tell_of_nothing(name, gate)

    def tell_of_nothing(self, name: str, gate: Gate) -> None:
        asked = gate.asked
        self.watch.arrive(name, found_nothing=True)
        eventually(lambda: gate.asked > asked + 1)  # the first was taken, then

    def empty_gate(self, name: str) -> Gate:
        """Add a query whose source is known to have nothing."""
        gate = Gate()
        self.add(name, gate)
        self.look(name, gate)
        self.look(name, gate)
        self.tells(empty=(name,))
        return gate

    def tells(self, empty: tuple[str, ...] = (), filled: tuple[str, ...] = ()) -> None:
        eventually(lambda: bool(self.told) and self.last == (empty, filled))

    @property
    def last(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return self.told[-1].empty, self.told[-1].filled


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    monkeypatch.setattr(input_watch, "LEAST_S", 0.02)
    monkeypatch.setattr(input_watch, "SHARE", 1.0)
    monkeypatch.setattr(input_watch, "ANSWER_S", 0.1)
    monkeypatch.setattr(input_watch, "RENEW_S", 0.2)
    made = Fleet()
    yield made
    made.watch.close()


def test_nothing_is_told_before_a_look_has_followed_a_question(fleet: Fleet) -> None:
    gate = Gate()
    fleet.add("q", gate)
    fleet.look("q", gate)
    asked = gate.asked
    eventually(lambda: gate.asked > asked + 2)
    assert not fleet.told, "something may have come between the trigger and the first question"
    fleet.look("q", gate)
    fleet.tells(empty=("q",))


def test_what_comes_is_told_and_what_was_read_is_forgotten(fleet: Fleet) -> None:
    gate = fleet.empty_gate("q")
    gate.rows = 1
    fleet.tells(filled=("q",))
    fleet.watch.arrive("q", found_nothing=False)
    fleet.tells()
    asked = gate.asked
    fleet.watch.arrive("q", found_nothing=True)
    eventually(lambda: gate.asked > asked)
    fleet.tells()


def test_it_is_said_again_as_long_as_it_holds(fleet: Fleet) -> None:
    fleet.empty_gate("q")
    said = len(fleet.told)
    eventually(lambda: len(fleet.told) > said + 2)
    assert fleet.last == (("q",), ())
    fleet.watch.forget("q")
    fleet.tells()


def test_what_was_told_lasts_until_it_is_said_again() -> None:
    slowest_s = input_watch.MOST_S + input_watch.ANSWER_S
    assert max(slowest_s, input_watch.RENEW_S) < INPUTS_LAST_S


def test_one_that_does_not_answer_holds_up_nobody(fleet: Fleet) -> None:
    slow, quick = Gate(quick=False), Gate()
    for name, gate in (("slow", slow), ("quick", quick)):
        fleet.add(name, gate)
        fleet.look(name, gate)
        fleet.look(name, gate)
    fleet.tells(empty=("quick", "slow"))
    slow.answers = threading.Event()
    fleet.tells(empty=("quick",))
    quick.rows = 1
    fleet.tells(filled=("quick",))
    slow.answers.set()
    fleet.tells(empty=("slow",), filled=("quick",))


def test_who_cannot_tell_is_asked_once(fleet: Fleet) -> None:
    gate, other = Gate(rows=None), Gate()
    fleet.add("q", gate)
    fleet.watch.arrive("q", found_nothing=True)
    fleet.add("other", other)
    fleet.look("other", other)
    asked = other.asked
    eventually(lambda: other.asked > asked + 3)
    assert gate.asked == 1


def test_why_nothing_is_known_is_logged_once(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    gate = Gate(fails=True)
    fleet.add("q", gate)
    fleet.look("q", gate)
    eventually(lambda: gate.asked > 5)
    assert len([record for record in caplog.records if "no such broker" in record.message]) == 1
    gate.fails = False
    fleet.look("q", gate)
    fleet.look("q", gate)
    fleet.tells(empty=("q",))


def test_an_answer_that_a_trigger_may_have_overtaken_does_not_count(fleet: Fleet) -> None:
    gate = fleet.empty_gate("q")
    gate.quick = False
    fleet.look("q", gate)
    gate.answers, asked = threading.Event(), gate.asked
    eventually(lambda: gate.asked > asked)
    gate.rows, gate.stands_there = 1, False
    gate.answers.set()
    fleet.empty_gate("other")  # it has turned a few times meanwhile
    assert all(not told.filled for told in fleet.told)


def test_who_does_not_stand_at_its_gate_is_not_asked_about(fleet: Fleet) -> None:
    gate = Gate(stands_there=False)
    fleet.add("q", gate)
    fleet.watch.arrive("q", found_nothing=True)
    fleet.empty_gate("other")  # it has turned a few times meanwhile
    assert not gate.asked


def test_what_was_seen_after_a_trigger_does_not_count_as_read(fleet: Fleet) -> None:
    """What a trigger found may be told late: by then its source has been asked once more."""
    gate = Gate()
    fleet.add("q", gate)
    fleet.look("q", gate)
    gate.seq += 1  # another trigger has found nothing
    gate.rows = 1
    asked = gate.asked
    eventually(lambda: gate.asked > asked + 1)
    fleet.tell_of_nothing("q", gate)
    asked = gate.asked
    eventually(lambda: gate.asked > asked + 2)
    assert all(not told.empty for told in fleet.told)


def test_a_watch_that_is_closed_while_it_asks_ends_without_a_word(
    fleet: Fleet, caplog: pytest.LogCaptureFixture
) -> None:
    closing, other = Gate(), Gate(quick=False)
    for name, gate in (("closing", closing), ("other", other)):
        fleet.add(name, gate)
        fleet.look(name, gate)

    def close() -> int:
        fleet.watch.close()
        return 0

    closing.mark = close  # type: ignore[method-assign]
    eventually(lambda: fleet.finder.closed)
    assert not [record for record in caplog.records if record.exc_info]


# -- rows that wait -------------------------------------------------------------------------------


@pytest.fixture
def counting(fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(input_watch, "counts_rows", lambda execution: True)
    monkeypatch.setattr(input_watch, "ANSWER_S", 30.0)
    return fleet


def test_what_was_counted_a_moment_ago_will_do(
    counting: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate(rows=7)
    counting.add("q", gate)
    monkeypatch.setattr(input_watch, "KEPT_S", 600.0)
    assert [counting.watch.rows_left(["q"]) for _ in range(3)] == [{"q": 7}] * 3
    assert gate.counted == 1
    monkeypatch.setattr(input_watch, "KEPT_S", 0.0)
    gate.rows = 8
    assert counting.watch.rows_left(["q"]) == {"q": 8}


def test_a_server_that_is_away_is_asked_one_question_for_each_query(
    counting: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_watch, "ANSWER_S", 0.1)
    gates = [Gate(rows=7, answers=threading.Event()) for _ in range(6)]
    names = [f"q{number}" for number in range(6)]
    for name, gate in zip(names, gates, strict=True):
        counting.add(name, gate)
    for _ in range(5):
        assert counting.watch.rows_left(names) == {}
    asks = input_watch.ASKERS
    eventually(lambda: counting.watch._pool._work_queue.qsize() == len(gates) - asks)
    for gate in gates:
        gate.answers.set()  # type: ignore[union-attr]
    eventually(lambda: counting.watch.rows_left(names) == dict.fromkeys(names, 7))


def test_one_that_fails_to_count_is_asked_again(
    counting: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, fails = Gate(rows=7), True

    def rows_left() -> int:
        if fails:
            raise OSError("no such broker")
        return 7

    monkeypatch.setattr(gate, "rows_left", rows_left)
    counting.add("q", gate)
    assert counting.watch.rows_left(["q"]) == {}
    fails = False
    assert counting.watch.rows_left(["q"]) == {"q": 7}


def test_sources_of_which_nobody_can_tell_are_searched_once(
    counting: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_watch, "KEPT_S", 0.0)
    counting.add("q", Gate(findable=False))
    for _ in range(3):
        assert counting.watch.rows_left(["q"]) == {}
    assert counting.finder.found == 1


def test_what_has_not_been_asked_at_the_end_is_not_asked(
    counting: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python waits as it ends for all that is in a pool."""
    monkeypatch.setattr(input_watch, "ANSWER_S", 0.1)
    gates = [Gate(rows=7, answers=threading.Event()) for _ in range(6)]
    for number, gate in enumerate(gates):
        counting.add(f"q{number}", gate)
    assert counting.watch.rows_left([f"q{number}" for number in range(6)]) == {}
    eventually(lambda: sum(gate.counted for gate in gates) == input_watch.ASKERS)
    counting.watch.close()
    eventually(lambda: counting.finder.closed)
    for gate in gates:
        gate.answers.set()  # type: ignore[union-attr]
    counting.watch._pool.shutdown()
    assert sum(gate.counted for gate in gates) == input_watch.ASKERS
    assert counting.watch.rows_left(["q0"]) == {}
