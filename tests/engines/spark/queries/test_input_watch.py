"""Questions to sources of queries that found nothing, without Spark."""

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.clock import RealClock
from slackwater.engines.spark.queries import input_watch
from slackwater.engines.spark.queries.input_watch import InputWatch
from slackwater.engines.spark.sources.arrivals import LocalFolder, Untold
from slackwater.ipc.messages import Inputs
from tests.waiting import eventually


@dataclass
class Gate:
    """A query that stands at its gate, and its only source."""

    seq: int = 2
    arrived_s: float = 0.0
    stands_there: bool = True
    quick: bool = True
    rows: int | None = 0  # None: nobody can tell
    answers: threading.Event | None = None  # before that no answer comes
    asked: int = 0

    def stands(self, now_s: float) -> bool:
        return self.stands_there

    def mark(self) -> int:
        self.asked += 1
        if self.answers is not None:
            self.answers.wait(30)
        if self.rows is None:
            raise Untold("nobody can tell")
        return self.rows

    def forget(self) -> None:
        """Keep nothing."""


class Finder:
    """Finds the source of a gate in its place."""

    def find(self, execution: Gate) -> tuple[Gate, ...]:
        return (execution,)

    def close(self) -> None:
        """Nothing is open."""


class Fleet:
    """A watch, and what it has told."""

    def __init__(self) -> None:
        self.told: list[Inputs] = []
        finder: Any = Finder()
        self.watch = InputWatch(self.told.append, RealClock(), finder)

    def add(self, name: str, gate: Any) -> None:
        self.watch.watch(name, name, gate, gate)

    def look(self, name: str, gate: Gate) -> None:
        """Let a trigger find nothing, and wait until an answer after that was taken."""
        asked = gate.asked
        self.watch.arrive(name, found_nothing=True)
        eventually(lambda: gate.asked > asked + 1)  # the first was, then

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
    gate = Gate()
    fleet.add("q", gate)
    fleet.look("q", gate)
    fleet.look("q", gate)
    fleet.tells(empty=("q",))
    gate.rows = 1
    fleet.tells(filled=("q",))
    fleet.watch.arrive("q", found_nothing=False)
    fleet.tells()
    asked = gate.asked
    fleet.watch.arrive("q", found_nothing=True)
    eventually(lambda: gate.asked > asked)
    fleet.tells()


def test_it_is_said_again_as_long_as_it_holds(fleet: Fleet) -> None:
    gate = Gate()
    fleet.add("q", gate)
    fleet.look("q", gate)
    fleet.look("q", gate)
    fleet.tells(empty=("q",))
    said = len(fleet.told)
    eventually(lambda: len(fleet.told) > said + 2)
    assert fleet.last == (("q",), ())
    fleet.watch.forget("q")
    fleet.tells()


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


def test_an_answer_that_a_trigger_may_have_overtaken_does_not_count(fleet: Fleet) -> None:
    gate = Gate(stands_there=False)
    fleet.add("q", gate)
    fleet.watch.arrive("q", found_nothing=True)
    other = Gate()
    fleet.add("other", other)
    fleet.look("other", other)
    fleet.look("other", other)
    fleet.tells(empty=("other",))
    assert not gate.asked


def test_a_folder_shows_what_was_added_wherever(tmp_path: Path) -> None:
    below = tmp_path / "a" / "b"
    below.mkdir(parents=True)
    folder = LocalFolder(str(tmp_path))
    marks = [folder.mark()]
    assert folder.mark() == marks[0]
    for path in (tmp_path / "one", below / "two"):
        path.write_text("row")
        marks.append(folder.mark())
    (below / "c").mkdir()
    marks.append(folder.mark())
    (below / "c" / "three").write_text("row")
    marks.append(folder.mark())
    assert len(set(marks)) == 5


def test_a_folder_whose_time_was_set_back_has_changed(tmp_path: Path) -> None:
    """As by whoever copies a folder with its times."""
    before = tmp_path.stat()
    folder = LocalFolder(str(tmp_path))
    mark = folder.mark()
    (tmp_path / "one").write_text("row")
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert folder.mark() != mark


def test_a_folder_that_was_made_within_the_same_tick_is_looked_into(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two folders are made one after the other, and somebody looks in between."""
    (tmp_path / "a").mkdir()
    ticked = tmp_path.stat()
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path: ticked if path == str(tmp_path) else stat(path))
    folder = LocalFolder(str(tmp_path))
    folder.mark()
    (tmp_path / "b").mkdir()
    mark = folder.mark()
    (tmp_path / "b" / "one").write_text("row")
    assert folder.mark() != mark


def test_a_folder_that_is_not_there_is_no_answer(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        LocalFolder(str(tmp_path / "none")).mark()
