"""A trial in a process of its own, and a comparison of such trials."""

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from slackwater.core import EngineError
from slackwater_bench.comparison import Comparison, Step
from slackwater_bench.journal import Journal
from slackwater_bench.trial import Result, Trial, run_in_process


@dataclass(frozen=True)
class Sum(Trial):
    """Adds numbers up."""

    runner: ClassVar[str] = "tests.slackwater_bench.test_trial:run"
    around_s: ClassVar[float] = 0.0
    patience_s: ClassVar[float] = 30.0

    arm: str
    numbers: tuple[int, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Impatient(Sum):
    """Does not wait."""

    patience_s: ClassVar[float] = 0.5


def run(trial: Sum) -> Result:
    """Run it."""
    if trial.arm == "slow":
        time.sleep(20)
    if trial.arm == "broken":
        raise EngineError("the JVM died")
    return {"sum": sum(trial.numbers)}


def test_settings_go_in_and_a_result_comes_out() -> None:
    assert run_in_process(Sum("plain", (1, 2, 3))) == {"sum": 6}


def test_a_failure_is_one_line() -> None:
    with pytest.raises(EngineError, match=r"a trial of broken failed: .*the JVM died") as caught:
        run_in_process(Sum("broken"))
    assert "\n" not in str(caught.value)


def test_a_trial_that_does_not_end_is_given_up() -> None:
    with pytest.raises(EngineError, match="a trial of slow did not end in"):
        run_in_process(Impatient("slow"))


def step(arm: str) -> Step:
    return Step(Sum(arm, (1, 2)), {"arm": arm}, arm)


def test_runs_may_be_kept_by_arm(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    comparison = Comparison({"rate": 5}, Journal(file), run=Sum.run, by="arm")
    comparison.run("runs", [step("plain"), step("broken")])
    given = {"arm": "plain", "numbers": [1, 2], "seconds": 0.0}
    assert comparison.result == {
        "rate": 5,
        "runs": {
            "plain": {"sum": 3, "trial": given},
            "broken": {"error": "the JVM died", "trial": given | {"arm": "broken"}},
        },
    }
    assert json.loads(file.read_text()) == comparison.result


def test_a_failure_ends_a_comparison_that_needs_all_and_keeps_what_there_is(tmp_path: Path) -> None:
    file = tmp_path / "result.json"
    comparison = Comparison({}, Journal(file), run=Sum.run, tolerant=False)
    with pytest.raises(EngineError, match="the JVM died"):
        comparison.run("runs", [step("plain"), step("broken"), step("plain")])
    assert [run["arm"] for run in json.loads(file.read_text())["runs"]] == ["plain"]
