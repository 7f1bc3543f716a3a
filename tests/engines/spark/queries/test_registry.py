"""The one owner of queries' specs and states, without Spark."""

import sys
import threading
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise, product
from typing import Any

import pytest

from slackwater.core import QuerySpec, UsageError
from slackwater.core.windows import Deadlines, InputStream
from slackwater.engines.spark.queries.record import ENDED, PRESENT, TRANSITIONS, QueryRecord, State
from slackwater.engines.spark.queries.registry import IllegalTransition, Registry
from slackwater.engines.spark.queries.status import note, query_status

LOST = "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat somewhere"
WRITER: Any = object()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(Registry, "strict", True)
    return Registry()


def begin(registry: Registry, name: str = "q", run: str = "run-1", **more: Any) -> QueryRecord:
    """A query that has been started."""
    draft = QueryRecord(QuerySpec(name), "clock", writer=WRITER, **more)
    record = registry.begin(registry.expect(draft), name, "id", run)
    assert record is not None
    return record


def again(registry: Registry, record: QueryRecord, run: str) -> None:
    """Another run of it."""
    _, mark = registry.expect_again(record.name, born=record.born, when=record.state)
    assert registry.begin(mark, record.name, "id", run) is not None


def present(registry: Registry, name: str = "q") -> QueryRecord:
    found = registry.get(name)
    assert found is not None
    return found


# -- updates ---------------------------------------------------------------------------------------


@pytest.fixture
def often_switched() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("often_switched")
def test_no_update_is_lost_when_four_threads_change_one_spec(registry: Registry) -> None:
    begin(registry)
    last = 500

    def delay(number: int) -> None:
        inputs = (InputStream("feed", "at", float(number)),)
        registry.revise("q", lambda s: replace(s, deadlines=replace(s.deadlines, inputs=inputs)))

    changes = [
        lambda number: registry.update("q", pace_s=float(number)),
        lambda number: registry.update("q", keep_open_s=float(number)),
        lambda number: registry.update("q", max_wait_s=float(number)),
        delay,
    ]
    together = threading.Barrier(len(changes))

    def run(change: Any) -> None:
        together.wait()
        for number in range(1, last + 1):
            change(number)

    threads = [threading.Thread(target=run, args=(change,)) for change in changes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    spec = present(registry).spec
    assert (spec.pace_s, spec.keep_open_s, spec.max_wait_s) == (last, last, last)
    assert spec.deadlines.inputs[0].watermark_delay_s == last


@pytest.mark.usefixtures("often_switched")
def test_subscribers_hear_every_change_in_order(registry: Registry) -> None:
    heard: list[tuple[int, int]] = []
    registry.subscribe(lambda old, new: heard.append((old.version if old else 0, new.version)))
    begin(registry)

    def run(name: str) -> None:
        for number in range(200):
            registry.update("q", **{name: float(number + 1)})

    threads = [threading.Thread(target=run, args=(n,)) for n in ("pace_s", "keep_open_s")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(heard) == 401
    assert all(before[1] == after[0] for before, after in pairwise(heard))


def test_subscribers_may_look_and_change(registry: Registry) -> None:
    def follow(old: QueryRecord | None, new: QueryRecord) -> None:
        if new.state is State.ACTIVE:
            registry.update(new.name, pace_s=1.0)

    def fail(old: QueryRecord | None, new: QueryRecord) -> None:
        raise ValueError("not the others' concern")

    registry.subscribe(fail)
    registry.subscribe(follow)
    begin(registry)
    registry.update("q", state=State.ACTIVE)
    assert present(registry).spec.pace_s == 1.0


def test_a_change_gives_a_new_version_and_nothing_new_does_not(registry: Registry) -> None:
    record = begin(registry)
    changed = registry.update("q", pace_s=1.0)
    assert changed is not None
    assert changed.version > record.version
    assert registry.update("q", pace_s=1.0) is changed
    assert record.spec.pace_s == 0.0
    assert changed.born == record.born
    assert registry.update("nobody", pace_s=1.0) is None
    with pytest.raises(TypeError, match="whole spec"):
        registry.update("q", spec=record.spec)


# -- states ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), list(product(State, State)))
def test_the_table_decides_which_changes_of_state_there_are(
    registry: Registry, monkeypatch: pytest.MonkeyPatch, before: State, after: State
) -> None:
    registry.add(QueryRecord(QuerySpec("q"), "clock", before))
    if before is after or after in TRANSITIONS[before]:
        assert registry.update("q", state=after) is not None
        assert present(registry).state is after
        return
    with pytest.raises(IllegalTransition, match="cannot go from"):
        registry.update("q", state=after)
    monkeypatch.setattr(Registry, "strict", False)
    assert registry.update("q", state=after) is None
    assert present(registry).state is before


def test_a_change_may_be_meant_for_some_states_only(registry: Registry) -> None:
    begin(registry)
    registry.update("q", state=State.PAUSED)
    assert registry.update("q", when=(State.STARTING,), state=State.ACTIVE) is None


def test_every_state_has_a_text() -> None:
    def texts(state: State) -> tuple[str, str | None]:
        record = QueryRecord(QuerySpec("q"), "clock", state)
        return query_status(record, None).state, note(record).state

    assert {state: texts(state) for state in State if state is not State.RELEASED} == {
        State.DECLARED: ("starting", "starting"),
        State.RESTING: ("fresh", "fresh"),
        State.WAITING: ("due", "due"),
        State.STARTING: ("starting", "starting"),
        State.ACTIVE: ("running", None),
        State.PAUSED: ("paused", "paused"),
        State.RESTARTING: ("failed", "starting"),
        State.STOPPED: ("stopped", "stopped"),
        State.FAILED: ("failed", "failed"),
    }
    assert PRESENT.isdisjoint(ENDED)


# -- runs ------------------------------------------------------------------------------------------


def test_what_is_heard_of_an_earlier_run_changes_nothing(registry: Registry) -> None:
    record = begin(registry)
    paused = registry.update("q", state=State.PAUSED)
    assert paused is not None
    again(registry, paused, "run-2")
    assert registry.end("run-1", None) is None
    assert registry.update("q", run="run-1", state=State.ACTIVE) is None
    assert present(registry).state is State.STARTING
    assert present(registry).born == record.born
    assert registry.of_run("run-1") == present(registry)  # its last progress is still its own


def test_a_query_has_no_run_while_it_is_started_again(registry: Registry) -> None:
    begin(registry)
    paused = registry.update("q", state=State.PAUSED, by_hand=True)
    assert paused is not None
    renewed, _ = registry.expect_again("q", born=paused.born, when=State.PAUSED)
    assert renewed is not None
    assert (renewed.run, renewed.by_hand, renewed.state) == (None, False, State.STARTING)
    assert registry.end("run-1", "it broke") is None
    assert registry.expect_again("q", born=paused.born, when=State.PAUSED) == (None, None)


def test_a_new_query_of_the_same_name_is_another(registry: Registry) -> None:
    first = begin(registry)
    registry.remove("q", born=first.born)
    second = begin(registry, run="run-2")
    assert second.born != first.born
    assert registry.end("run-1", None) is None
    assert registry.remove("q", born=first.born) is None
    assert present(registry).run == "run-2"


def test_a_run_begins_once(registry: Registry) -> None:
    begin(registry)
    assert registry.begin(None, "q", "id", "run-1") is None


def test_a_start_without_our_mark_is_none_of_ours(registry: Registry) -> None:
    mark = registry.expect(QueryRecord(QuerySpec(""), "clock", writer=WRITER))
    assert registry.begin(None, None, "12345678-9", "theirs") is None
    ours = registry.begin(mark, None, "87654321-0", "ours")
    assert ours is not None
    assert (ours.name, ours.run) == ("query-87654321", "ours")


def test_a_gated_query_may_be_started_by_its_user_again_and_again(registry: Registry) -> None:
    registry.add(QueryRecord(QuerySpec("q", priority=3.0), "source", State.DECLARED))
    for run in ("run-1", "run-2"):
        begun = registry.begin(None, "q", "id", run)
        assert begun is not None
        assert (begun.state, begun.spec.priority) == (State.STARTING, 3.0)
        registry.end(run, None)
        assert present(registry).state is State.STOPPED


def test_the_spec_of_a_gated_query_is_the_one_it_was_gated_with(registry: Registry) -> None:
    gated = QuerySpec("q", priority=3.0, deadlines=Deadlines(output_mode="update"))
    registry.add(QueryRecord(gated, "source", State.DECLARED))
    mark = registry.expect(QueryRecord(QuerySpec("q", target_s=2.0), "none", writer=WRITER))
    begun = registry.begin(mark, "q", "id", "run-1")
    assert begun is not None
    assert (begun.spec, begun.gate) == (replace(gated, target_s=2.0), "source")
    assert begun.writer is WRITER


def test_names_and_runs_are_taken_once(registry: Registry) -> None:
    begin(registry)
    registry.expect(QueryRecord(QuerySpec("soon"), "clock", writer=WRITER))
    for name, run in (("q", None), ("soon", None), ("other", "run-1")):
        with pytest.raises(UsageError, match="already"):
            registry.add(QueryRecord(QuerySpec(name), "clock", run=run))


def test_ends_of_runs(registry: Registry) -> None:
    ends = {"done": None, "broken": "java.lang.ArithmeticException: / by zero", "lost": LOST}
    for name, exception in ends.items():
        begin(registry, name, f"run of {name}")
        registry.end(f"run of {name}", exception)
    found = {record.name: (record.state, record.error) for record in registry.all()}
    assert found == {
        "done": (State.STOPPED, None),
        "broken": (State.FAILED, "java.lang.ArithmeticException: / by zero"),
        "lost": (State.RESTARTING, LOST.partition("\n")[0]),
    }


def test_a_query_that_only_its_user_can_start_is_not_started_again(registry: Registry) -> None:
    registry.add(QueryRecord(QuerySpec("q"), "source", State.DECLARED))
    registry.begin(None, "q", "id", "run-1")
    registry.end("run-1", LOST)
    assert present(registry).state is State.FAILED
    assert present(registry).error == LOST.partition("\n")[0]
