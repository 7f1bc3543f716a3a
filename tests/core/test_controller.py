"""The cycle on virtual time: what is collected, decided, enforced and remembered."""

from slackwater import policies
from slackwater.core import Controller, QuerySpec, RealClock, VirtualClock
from tests.toy_engine import ToyEngine


def controller(dry_run: bool = False) -> tuple[Controller, ToyEngine, VirtualClock]:
    clock = VirtualClock()
    engine = ToyEngine(clock, [QuerySpec("a"), QuerySpec("b")], slots=1, seed=1)
    built = Controller(engine, policies.load("fcfs"), engine, clock, dry_run=dry_run, remember=5)
    return built, engine, clock


def test_decisions_are_enforced_and_remembered() -> None:
    loop, engine, clock = controller()
    loop.run(lambda: clock.now() > 2)
    assert {phase for _, _, phase in engine.log} == {"waiting", "running", "idle"}
    newest = loop.decisions[-1]
    assert newest.enforced
    assert newest.reason.startswith("first at the gate")
    assert newest.waiting in ((), ("a",), ("b",))
    assert newest.query not in newest.waiting


def test_only_the_last_decisions_are_kept() -> None:
    loop, _, clock = controller()
    loop.run(lambda: clock.now() > 10)
    assert len(loop.decisions) == 5


def test_a_dry_run_decides_and_does_not_act() -> None:
    loop, engine, clock = controller(dry_run=True)
    loop.run(lambda: clock.now() > 2)
    assert {phase for _, _, phase in engine.log} == {"waiting"}
    assert loop.decisions
    assert not any(decision.enforced for decision in loop.decisions)


def test_the_real_clock_is_the_time_of_day() -> None:
    earlier = RealClock().now()
    assert 1.7e9 < earlier <= RealClock().now()
