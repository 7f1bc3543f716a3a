"""The loop on real threads: several policies, switching, engines that come and go."""

import os
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.clock import RealClock, VirtualClock
from slackwater.core.entities import Operator, Reading, Thread
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.enforce.journal import Journal
from slackwater.enforce.rights import has_cap_sys_nice
from slackwater.engines.outside import Driver
from slackwater.operations.middleware.file import MiddlewareFile
from slackwater.operations.middleware.loop import Middleware
from slackwater.policies import Policy
from tests.busy_process import Busy, idle_process

pytestmark = pytest.mark.skipif(
    not has_cap_sys_nice(), reason="lowering nice values takes CAP_SYS_NICE"
)
BASE = os.getpriority(os.PRIO_PROCESS, 0)


class Scripted(Driver):
    """Tells what the test says; ``fail`` makes it answer nonsense."""

    provides = frozenset({"cpu-time", "queue-size"})
    queues: dict[str, float] = {}  # noqa: RUF012
    threads: dict[str, tuple[Thread, ...]] = {}  # noqa: RUF012
    fail = False
    reads = 0

    def _read(self, now_s: float) -> Reading:
        Scripted.reads += 1
        if Scripted.fail:
            raise KeyError("jobs")
        operators = tuple(
            Operator(name, name[0], (name[0],), threads=threads)
            for name, threads in Scripted.threads.items()
        )
        return Reading(now_s, operators, {"queue-size": dict(Scripted.queues)})


class Sound(Driver):
    """Always answers, whatever the other one does."""

    provides = frozenset({"cpu-time"})
    thread: Thread

    def _read(self, now_s: float) -> Reading:
        return Reading(now_s, (Operator("x", "x", threads=(Sound.thread,)),), {})


SCRIPTED = {"driver": f"{__name__}:Scripted"}
SOUND = {"driver": f"{__name__}:Sound"}


@pytest.fixture(autouse=True)
def forget() -> None:
    Scripted.fail, Scripted.reads = False, 0


def middleware(
    tmp_path: Path,
    said: list[str],
    policies: dict[str, Any],
    clock: Clock = RealClock(),
    **engines: Any,
) -> Middleware:
    for section in policies.values():
        if section.get("translator", "nice") == "nice":
            section.setdefault("translator_parameters", {"best": -20})
    file = MiddlewareFile(
        engines=engines or {"e": SCRIPTED},
        policies=policies,
        name=f"slackwater-tests-{os.getpid()}",
    )
    return Middleware(file, Journal(tmp_path / "journal"), said.append, clock=clock)


def script(busy: Busy, **queues: float) -> None:
    Scripted.threads = {name: (thread,) for name, thread in zip(queues, busy.threads, strict=False)}
    Scripted.queues = queues


def nice(busy: Busy) -> list[int]:
    return [os.getpriority(os.PRIO_PROCESS, thread.tid) for thread in busy.threads]


class SlowClock(VirtualClock):
    """Three seconds pass between two looks at it."""

    def monotonic(self) -> float:
        self.sleep(3.0)
        return self.now()


def test_the_longest_queue_gets_the_best_value_and_all_is_put_back(tmp_path: Path) -> None:
    said: list[str] = []
    with idle_process(3) as busy:
        script(busy, a1=0, a2=50, b1=100)
        running = middleware(tmp_path, said, {"qs": {"policy": "queue-size"}})
        running.step(10.0)
        assert nice(busy) == [19, 0, -20]
        script(busy, a1=100, a2=50, b1=0)
        running.step(10.5)
        assert nice(busy) == [19, 0, -20], "its period is a second"
        running.step(11.0)
        assert nice(busy) == [-20, 0, 19]
        running.close()
        assert nice(busy) == [BASE] * 3
        assert said == []


def test_each_policy_has_its_period_and_its_scope(tmp_path: Path) -> None:
    with idle_process(3) as busy:
        script(busy, a1=0, a2=50, b1=100)
        policies = {
            "mine": {"policy": "queue-size", "queries": "a", "period": 0.5},
            "fixed": {"priorities": {"b": 1}, "translator_parameters": {"best": 5}, "queries": "b"},
        }
        running = middleware(tmp_path, [], policies)
        running.step(1.0)
        assert nice(busy) == [19, -20, 5]
        for now_s in (1.25, 1.5, 1.75, 2.0):
            running.step(now_s)
        assert running.cycles == 3
        assert Scripted.reads == 3, "one reading serves all policies of a moment"
        running.close()


def test_a_priority_for_nobody_is_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    with idle_process(2) as busy:
        script(busy, a1=0, b1=0)
        running = middleware(tmp_path, said, {"fixed": {"priorities": {"a": 1, "bee": 2}}})
        running.step(1.0)
        running.step(2.0)
        running.close()
    assert said == ["fixed: no operator named bee; these are: a, b"]


def test_a_policy_switches_by_condition_and_by_hand(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        script(busy, a1=1, a2=5)
        policies = {"qs": {"policy": "queue-size", "when": "queue-size.max > 100"}}
        running = middleware(tmp_path, [], policies)
        running.step(1.0)
        assert nice(busy) == [BASE, BASE]
        script(busy, a1=1, a2=500)
        running.step(2.0)
        assert nice(busy) == [19, -20]
        running.switch("qs", False)
        running.step(3.0)
        assert nice(busy) == [BASE, BASE]
        running.switch("qs", None)
        running.step(4.0)
        assert nice(busy) == [19, -20]
        running.close()


def test_one_policy_takes_over_from_another(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        script(busy, a1=1, a2=5)
        policies = {
            "calm": {"priorities": {"a": 1}, "when": "queue-size.max <= 100"},
            "busy": {"policy": "queue-size", "when": "queue-size.max > 100"},
        }
        running = middleware(tmp_path, [], policies)
        running.step(1.0)
        assert nice(busy) == [-20, -20]
        script(busy, a1=500, a2=5)
        running.step(2.0)
        assert nice(busy) == [-20, 19]
        running.close()


def test_an_engine_that_answers_nonsense_is_left_out_and_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    with idle_process(3) as busy:
        script(busy, a1=1, a2=5)
        policies = {
            "one": {"policy": "queue-size", "engines": ["e"]},
            "other": {"priorities": {"x": 1}, "engines": ["f"]},
        }
        Sound.thread = busy.threads[2]
        running = middleware(tmp_path, said, policies, VirtualClock(), e=SCRIPTED, f=SOUND)
        running.step(1.0)
        Scripted.fail = True
        for now_s in (2.0, 3.0, 4.0, 5.0):
            running.step(now_s)
        assert nice(busy) == [BASE, BASE, -20], "what it had been given is put back"
        (line,) = said
        assert line.startswith("going on without e: e answers nonsense (KeyError")
        assert running.engines["f"].failing is None
        Scripted.fail = False
        for now_s in (10.0, 11.0):
            running.step(now_s)
        assert nice(busy) == [19, -20, -20]
        assert said[-1] == "e is back"
        running.close()


def test_a_dry_run_sets_nothing(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        script(busy, a1=1, a2=5)
        file = MiddlewareFile(engines={"e": SCRIPTED}, policies={"p": {"policy": "queue-size"}})
        running = Middleware(file, Journal(tmp_path / "j"), pytest.fail, dry_run=True)
        running.step(1.0)
        assert len(running.plans["p"]) == 2
        assert nice(busy) == [BASE, BASE]
        running.close()


def test_logical_operators_share_what_the_rule_says(tmp_path: Path) -> None:
    with idle_process(3) as busy:
        script(busy, a1=10, a2=20, b1=25)
        policies = {"qs": {"policy": "queue-size", "operators": "logical"}}
        running = middleware(tmp_path, [], policies)
        running.step(1.0)
        assert nice(busy) == [-20, -20, 19], "a has 30 tuples in two copies, b has 25"
        running.close()


@pytest.mark.parametrize("policy", ["klink", "streambox", "round-robin", "fcfs", "random-order"])
def test_every_policy_can_be_used(tmp_path: Path, policy: str) -> None:
    class Aged(Scripted):
        provides = Scripted.provides | {"head-age"}

    Scripted.provides = Aged.provides
    with idle_process(2) as busy:
        script(busy, a1=1, b1=5)
        running = middleware(tmp_path, [], {"p": {"policy": policy}})
        running.step(1.0)
        assert len(running.plans["p"]) == 2
        running.close()
        assert nice(busy) == [BASE, BASE]


def test_a_missing_engine_is_an_error_of_the_engine_only(tmp_path: Path) -> None:
    said: list[str] = []
    nobody = {"driver": "flink", "rest": "http://127.0.0.1:1"}
    running = middleware(tmp_path, said, {"p": {"policy": "queue-size"}}, f=nobody)
    for now_s in (1.0, 2.0, 3.0):
        running.step(now_s)
    assert len(said) == 1
    assert "going on without f: http://127.0.0.1:1 does not answer" in said[0]
    with pytest.raises(EngineError):
        running.engines["f"].driver.read(0.0)
    running.close()


def test_a_policy_that_raises_sets_nothing_and_the_others_go_on(tmp_path: Path) -> None:
    said: list[str] = []
    with idle_process(2) as busy:
        script(busy, a1=1, b1=5)
        policies = {
            "broken": {"policy": f"{__name__}:Broken", "queries": "a"},
            "other": {"priorities": {"b": 1}, "queries": "b"},
        }
        running = middleware(tmp_path, said, policies)
        running.step(1.0)
        running.step(2.0)
        assert nice(busy) == [BASE, -20]
        assert said == ["broken sets nothing: ZeroDivisionError: division by zero"]
        running.close()


class Broken(Policy):
    """A user's own, with a mistake."""

    def _rank(self, waiting: Any, snapshot: Any) -> Any:
        return [1 / 0]


def test_an_engine_that_hangs_is_asked_seldom(tmp_path: Path) -> None:
    running = middleware(tmp_path, [], {"p": {"policy": "queue-size"}}, SlowClock())
    Scripted.fail = True
    for second in range(40):
        running.engines["e"].read(float(second))
    assert Scripted.reads == 2


def test_what_is_no_number_is_not_known(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        script(busy, a1=float("nan"), b1=5)
        running = middleware(tmp_path, [], {"p": {"policy": "queue-size"}})
        running.step(1.0)
        assert nice(busy) == [-20, -20], "what is not known comes first, to become known"
        running.close()


def test_a_clock_that_is_set_back_stops_nothing(tmp_path: Path) -> None:
    with idle_process(2) as busy:
        script(busy, a1=1, b1=5)
        running = middleware(tmp_path, [], {"p": {"policy": "queue-size"}})
        running.step(5000.0)
        script(busy, a1=5, b1=1)
        running.step(1000.0)
        assert nice(busy) == [-20, 19]
        running.close()
