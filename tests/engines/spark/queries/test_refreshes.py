"""Runs of tables: how many at once, in which order, and what a failure does; in virtual time."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.core import QuerySpec, UsageError, VirtualClock
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.refreshes import TRIES, Refresher
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.timetable import BACK_OFF_S, JITTER


class Slots:
    """A controller that gives slots when it is told to; ``hold_s`` is None: it is off."""

    def __init__(self) -> None:
        self.hold_s: float | None = None
        self.asked: list[str] = []
        self._give: Callable[[str], None] = lambda name: None

    def on_turn(self, sink: Callable[[str], None]) -> None:
        self._give = sink

    def ask_turn(self, record: QueryRecord) -> bool:
        if self.hold_s is None:
            return False
        self.asked.append(record.name)
        return True

    def give(self, name: str) -> None:
        self._give(name)


class Runs:
    """Starts runs that end when they are told to."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.started: list[str] = []
        self.most = 0  # at once
        self.refuses: set[str] = set()  # tables whose runs cannot even be started
        self.running: dict[str, str] = {}  # runs by name

    def declare(self, draft: QueryRecord) -> QueryRecord:
        return self.registry.add(draft)

    def relaunch(self, record: QueryRecord) -> None:
        again, mark = self.registry.expect_again(record.name, born=record.born, when=record.state)
        assert again is not None
        if record.name in self.refuses:
            self.registry.cancel(str(mark))
            self.registry.fail(record.name, "no such path")
            raise RuntimeError("no such path")
        assert record.name not in self.running, "two runs of one table"
        run = f"{record.name} {len(self.started)}"
        self.registry.begin(mark, record.name, "id", run)
        self.registry.update(record.name, state=State.ACTIVE)
        self.started.append(record.name)
        self.running[record.name] = run
        self.most = max(self.most, len(self.running))

    def end(self, name: str, error: str | None = None) -> None:
        self.registry.end(self.running.pop(name), error)


class Fleet:
    """A refresher with all around it pretended."""

    def __init__(self, at_once: int = 2) -> None:
        self.clock = VirtualClock(1000.0)
        self.registry = Registry()
        self.runs = Runs(self.registry)
        self.slots = Slots()
        self.refresher = Refresher(self.registry, self.runs, self.slots, at_once, self.clock)

    def add(
        self,
        name: str,
        every_s: float | None = 60.0,
        priority: float = 1.0,
        refreshed_s: float | None = None,
    ) -> None:
        spec = QuerySpec(name, priority, max_wait_s=10.0)
        writer: Any = object()
        draft = QueryRecord(spec, "none", State.RESTING, writer=writer, refreshed=True)
        self.refresher.add(draft, every_s, refreshed_s)

    def end(self, name: str, error: str | None = None) -> None:
        self.runs.end(name, error)
        self.look()

    def look(self) -> float:
        return self.refresher.look()

    def of(self, name: str) -> QueryRecord:
        found = self.registry.get(name)
        assert found is not None
        return found

    def shown(self, name: str) -> str:
        found = self.of(name).freshness()
        assert found is not None
        return found.state


@pytest.fixture
def fleet(monkeypatch: pytest.MonkeyPatch) -> Fleet:
    monkeypatch.setattr(Registry, "strict", True)
    return Fleet()


def test_a_few_at_once_and_all_in_the_end(fleet: Fleet) -> None:
    names = [f"t{number}" for number in range(300)]
    for name in names:
        fleet.add(name)
    fleet.look()
    while fleet.runs.running:
        fleet.end(next(iter(fleet.runs.running)))
    assert fleet.runs.started == names
    assert fleet.runs.most == 2
    assert {fleet.shown(name) for name in names} == {"fresh"}
    assert fleet.look() == 60.0


def test_the_stalest_goes_first_whenever_there_is_room(fleet: Fleet) -> None:
    fleet.refresher.at_once = 1
    fleet.add("hourly", 3600.0, refreshed_s=1000.0 - 2 * 3600)
    fleet.add("minutely", 60.0, refreshed_s=1000.0 - 300)
    fleet.add("important", 60.0, priority=3.0, refreshed_s=1000.0 - 120)
    fleet.look()
    for _ in range(3):
        fleet.end(next(iter(fleet.runs.running)))
    assert fleet.runs.started == ["important", "minutely", "hourly"]


def test_no_two_runs_of_one_table_however_long_one_takes(fleet: Fleet) -> None:
    fleet.add("slow", 1.0)
    fleet.look()
    for _ in range(50):
        fleet.clock.sleep(10.0)
        fleet.look()
    assert fleet.runs.started == ["slow"]
    fleet.end("slow")
    assert fleet.runs.started == ["slow", "slow"]  # it is stale already


def test_a_failure_backs_off_and_takes_nobody_down(fleet: Fleet) -> None:
    fleet.add("bad", 1.0)
    fleet.add("good", 1.0)
    fleet.look()
    fleet.end("bad", "java.io.IOException: no such disk\n\tat somewhere")
    fleet.end("good")
    assert (fleet.of("bad").state, fleet.shown("bad")) == (State.RESTING, "retrying")
    assert fleet.of("bad").error == "java.io.IOException: no such disk"
    tries = []
    began_s = fleet.clock.now()
    while fleet.clock.now() < began_s + 40:
        fleet.clock.sleep(0.25)
        fleet.look()
        if "bad" in fleet.runs.running:
            assert fleet.of("bad").error is not None  # until one has gone well
            tries.append(fleet.clock.now())
            fleet.end("bad", "again")
        if "good" in fleet.runs.running:
            fleet.end("good")
    assert fleet.runs.started.count("good") >= 35
    pauses = [b - a for a, b in zip([began_s, *tries], tries, strict=False)]
    assert len(pauses) == 4  # about 2, 4, 8, 16 s
    for number, pause_s in enumerate(pauses):
        meant_s = BACK_OFF_S * 2**number
        assert abs(pause_s - meant_s) <= JITTER * meant_s + 0.25
    fleet.clock.sleep(600)
    fleet.look()
    fleet.end("bad")
    assert (fleet.of("bad").error, fleet.shown("bad")) == (None, "fresh")


def test_a_run_that_cannot_be_started_counts_as_failed(fleet: Fleet) -> None:
    fleet.runs.refuses = {"gone"}
    fleet.add("gone")
    fleet.look()
    fleet.look()
    assert (fleet.shown("gone"), fleet.of("gone").error) == ("retrying", "no such path")
    fleet.runs.refuses = set()
    fleet.clock.sleep(10)
    fleet.look()
    fleet.end("gone")
    assert fleet.shown("gone") == "fresh"


def test_a_table_that_is_refreshed_once_stops(fleet: Fleet) -> None:
    fleet.add("once", None, refreshed_s=999.0)  # whatever was before
    fleet.add("never", None)
    fleet.look()
    fleet.end("once")
    assert fleet.of("once").state is State.STOPPED
    for _ in range(TRIES):
        fleet.end("never", "no such disk")
        fleet.clock.sleep(600)
        fleet.look()
    assert (fleet.of("never").state, fleet.of("never").error) == (State.FAILED, "no such disk")
    assert fleet.runs.started.count("never") == TRIES


def test_a_run_waits_for_its_slot(fleet: Fleet) -> None:
    fleet.slots.hold_s = 0.0
    for name in ("a", "b", "c"):
        fleet.add(name)
    assert fleet.look() == 10.0  # its max_wait
    assert (fleet.slots.asked, fleet.runs.started) == (["a", "b"], [])
    assert fleet.of("a").present  # so the controller hears of it, and when it goes
    fleet.slots.give("b")
    fleet.look()
    assert fleet.runs.started == ["b"]
    fleet.end("b")
    assert not fleet.of("b").present
    assert fleet.slots.asked == ["a", "b", "c"]


def test_a_slot_that_nobody_gives_is_taken_in_the_end(fleet: Fleet) -> None:
    fleet.slots.hold_s = 30.0  # the load asks for more than max_wait
    fleet.add("a")
    assert fleet.look() == 30.0
    fleet.clock.sleep(29.0)
    fleet.look()
    assert fleet.runs.started == []
    fleet.clock.sleep(1.0)
    fleet.look()
    assert fleet.runs.started == ["a"]


def test_a_controller_that_is_lost_holds_no_run(fleet: Fleet) -> None:
    fleet.slots.hold_s = 0.0
    fleet.add("a")
    fleet.look()
    fleet.slots.hold_s = None
    fleet.look()
    assert fleet.runs.started == ["a"]


def test_a_late_slot_begins_nothing(fleet: Fleet) -> None:
    fleet.slots.hold_s = 0.0
    fleet.add("a")
    fleet.look()
    fleet.clock.sleep(10.0)
    fleet.look()
    fleet.slots.give("a")
    fleet.look()
    fleet.end("a")
    fleet.clock.sleep(60.0)
    fleet.look()
    assert fleet.of("a").state is State.WAITING
    assert fleet.runs.started == ["a"]


def test_paused_tables_leave_their_place_to_others(fleet: Fleet) -> None:
    fleet.slots.hold_s = 0.0
    for name in ("a", "b", "c"):
        fleet.add(name)
    fleet.look()
    fleet.registry.update("a", state=State.PAUSED)
    fleet.look()
    assert fleet.slots.asked == ["a", "b", "c"]
    fleet.registry.update("a", state=State.RESTING)
    for name in ("b", "c"):
        fleet.slots.give(name)
    fleet.look()
    fleet.end("b")
    assert fleet.slots.asked[3:] == ["a"]


def test_a_table_that_is_stopped_in_the_middle_of_a_run(fleet: Fleet) -> None:
    fleet.add("a")
    fleet.look()
    fleet.registry.update("a", state=State.STOPPED)
    fleet.look()
    fleet.registry.remove("a")
    assert fleet.refresher.timetable.freshness("a") is None
    fleet.runs.running.clear()
    fleet.add("a")  # again, under the same name
    fleet.look()
    assert fleet.runs.started == ["a", "a"]


def test_a_name_that_is_there_is_refused_and_nothing_changes(fleet: Fleet) -> None:
    fleet.add("a", 60.0)
    with pytest.raises(UsageError, match="named 'a' already"):
        fleet.add("a", 5.0)
    found = fleet.of("a").freshness()
    assert found is not None
    assert found.every_s == 60.0


def test_who_closes_waits_no_longer_than_it_says(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def join(timeout: float) -> None:
        fleet.clock.sleep(timeout - 1.0)  # the thread is starting a run meanwhile

    def wait_change(registry: Registry, timeout_s: float) -> None:
        fleet.clock.sleep(timeout_s)

    thread: Any = SimpleNamespace(join=join)
    monkeypatch.setattr(fleet.refresher, "_thread", thread)
    monkeypatch.setattr(Registry, "wait_change", wait_change)
    fleet.add("slow")
    fleet.look()
    began_s = fleet.clock.now()
    fleet.refresher.close(5.0)
    assert fleet.runs.running
    assert fleet.clock.now() - began_s == pytest.approx(5.0)


def test_a_fleet_that_was_stopped_takes_in_no_table(fleet: Fleet) -> None:
    fleet.refresher.close(1.0)
    with pytest.raises(UsageError, match="has been stopped: make another Fleet"):
        fleet.add("late")
    assert fleet.registry.get("late") is None


def test_after_a_restart_only_those_go_that_are_stale(fleet: Fleet) -> None:
    """Checkpoints tell when each was last refreshed."""
    fleet.add("lately", 60.0, refreshed_s=990.0)
    fleet.add("before", 60.0, refreshed_s=500.0)
    fleet.add("never", 60.0)
    fleet.look()
    assert fleet.runs.started == ["never", "before"]
    assert (fleet.shown("lately"), fleet.of("lately").state) == ("fresh", State.RESTING)
    fleet.runs.end("never")
    assert fleet.look() == 50.0
