"""Which runs wait and which do not, without Spark."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from slackwater.core.clock import VirtualClock
from slackwater.engines.spark.queries.held import Held
from slackwater.engines.spark.queries.held_runs import HeldRuns
from slackwater.ipc.messages import Grant


@dataclass
class Gate:
    """Remembers what it was told."""

    name: str = "q"
    told: list[object] = field(default_factory=list)

    def close(self, bound_s: float) -> None:
        self.told.append(bound_s)

    def open(self) -> None:
        self.told.append("open")

    def uninstall(self) -> None:
        self.told.append("off")


class Limits:
    """The read limits of sources that are not ours."""

    def lift(self) -> None:
        """Nothing is limited."""


@pytest.fixture
def runs() -> HeldRuns:
    return HeldRuns(VirtualClock())


def add(runs: HeldRuns, run: str) -> Gate:
    gate = Gate()
    view: Any = None
    limits: Any = Limits()
    pretended: Any = gate
    runs.add(run, Held(pretended, view, limits, 10.0))
    return gate


def test_a_gate_is_shut_only_where_somebody_holds(runs: HeldRuns) -> None:
    early = add(runs, "early")
    runs.hold_for(30.0)
    assert (runs.hold_s, early.told) == (None, [])
    runs.hold_all()
    late = add(runs, "late")
    assert (runs.hold_s, early.told, late.told) == (30.0, [30.0], [30.0])
    runs.hold_for(0.0)
    runs.open_all()
    assert (runs.hold_s, early.told) == (None, [30.0, 10.0, "open"])


def test_a_bound_that_changes_is_told(runs: HeldRuns) -> None:
    gate = add(runs, "r")
    runs.bound_wait("r", 20.0)
    runs.hold_all()
    runs.bound_wait("r", 5.0)
    runs.bound_wait("another", 1.0)
    runs.bound_wait(None, 1.0)
    assert gate.told == [20.0, 5.0]


def test_each_arrival_has_one_grant(runs: HeldRuns) -> None:
    add(runs, "r")
    runs.hold_all()
    arrived = runs.arrive("r")
    assert arrived is not None
    assert runs.take_grant("r", Grant("q", arrived.seq)) is arrived
    assert runs.take_grant("r", Grant("q", arrived.seq)) is None
    seq = runs.wait_on(arrived)
    assert runs.take_grant("r", Grant("q", seq - 1)) is None
    assert runs.take_grant("r", Grant("q", seq)) is arrived
    assert runs.arrive("another") is None


def test_nobody_is_granted_what_nobody_holds(runs: HeldRuns) -> None:
    add(runs, "r")
    arrived = runs.arrive("r")
    assert arrived is not None
    assert runs.take_grant("r", Grant("q", arrived.seq)) is None
    runs.hold_all()
    arrived = runs.arrive("r")
    assert arrived is not None
    runs.open_all()
    assert runs.take_grant("r", Grant("q", arrived.seq)) is None


def test_all_wait_when_no_batch_of_theirs_runs(runs: HeldRuns) -> None:
    for run in ("a", "b"):
        add(runs, run)
    assert runs.all_wait({"a", "b"}), "nobody holds them"
    runs.hold_all()
    runs.arrive("a")
    assert runs.all_wait({"a", "none"})
    assert not runs.all_wait({"a", "b"})
    runs.arrive("b")
    assert runs.all_wait({"a", "b"})


def test_a_gate_that_is_taken_off_is_forgotten(runs: HeldRuns) -> None:
    gate = add(runs, "r")
    for _ in range(2):
        runs.take_off("r")
    assert gate.told == ["off"]
    assert "r" not in runs
    assert runs.runs == []
