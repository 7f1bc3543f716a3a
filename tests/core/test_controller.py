"""The cycle on virtual time: what is collected, decided, enforced and remembered."""

from slackwater.core import RealClock
from tests.simulated import query, simulate

FLEET = [query(1), query(2)]


def test_decisions_are_enforced_and_remembered() -> None:
    engine, loop = simulate("fcfs", FLEET, 2, slots=1)
    assert {phase for _, _, phase in engine.log} == {"waiting", "running", "idle"}
    newest = loop.decisions[-1]
    assert newest.enforced
    assert newest.reason.startswith("first at the gate")
    assert newest.waiting in ((), ("q1",), ("q2",))
    assert newest.query not in newest.waiting


def test_only_the_last_decisions_are_kept() -> None:
    _, loop = simulate("fcfs", FLEET, 10, slots=1)
    assert len(loop.decisions) == 5


def test_a_dry_run_decides_and_does_not_act() -> None:
    engine, loop = simulate("fcfs", FLEET, 2, slots=1, dry_run=True)
    assert {phase for _, _, phase in engine.log} == {"waiting"}
    assert loop.decisions
    assert not any(decision.enforced for decision in loop.decisions)


def test_the_real_clock_is_the_time_of_day() -> None:
    earlier = RealClock().now()
    assert 1.7e9 < earlier <= RealClock().now()
