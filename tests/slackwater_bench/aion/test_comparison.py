"""The comparison of samplers without Spark: which trials, and what becomes of their outcomes."""

from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import EngineError, UsageError
from slackwater_bench.aion.comparison import compare, plan
from slackwater_bench.aion.figures import figures, table
from slackwater_bench.aion.report import write_aion_report
from slackwater_bench.aion.trial import AionTrial

BASE = AionTrial(sampler="", seed=5)
YSB = [("ysb", {"campaigns": 10}), ("ysb", {})]
OUTCOME = {
    "latencies_s": [1.0, 2.0],
    "waits_s": [0.5, 0.5],
    "rests_s": [0.5, 1.5],
    "sampling_rate": {"mean": 0.5},
    "errors": [0.01, 0.06],
    "unbounded_errors": [0.4],
    "intervals": 4,
    "covered": 3,
    "missing_groups": 0,
    "cpu_s": 10.0,
    "planner_cpu_s": 0.1,
    "windows": {"emitted": 2, "expected": 2},
}


def outcome(trial: AionTrial) -> dict[str, Any]:
    if trial.sampler == "aq-k-slack":
        raise EngineError("it broke")
    return OUTCOME


def compared(repeats: int = 2) -> dict[str, Any]:
    steps = plan(BASE, YSB, ["EG"], ["1000"], ["k-slack", "aq-k-slack", "aion"], repeats)
    return compare(steps, lambda line: None, run=outcome)


def test_arms_alternate_and_share_their_seed_within_a_repeat() -> None:
    steps = plan(BASE, YSB[:1], ["EG"], ["1000"], ["k-slack", "aion"], 2)
    assert [s.trial.sampler for s in steps] == ["k-slack", "aion", "aion", "k-slack"]
    assert [s.trial.seed for s in steps] == [5, 5, 6, 6]
    assert {(s.trial.delays, s.trial.gaps) for s in steps} == {("exponential:240ms", "gamma:2")}


def test_a_setting_may_be_written_out() -> None:
    (step,) = plan(BASE, YSB[1:], ["uniform:0:1s/constant"], ["1000"], ["aion"], 1)
    assert (step.trial.delays, step.trial.gaps) == ("uniform:0:1s", "constant")
    with pytest.raises(UsageError, match="unknown setting 'XX'; known: CC, GG, EC, EG"):
        plan(BASE, YSB, ["XX"], ["1000"], ["aion"], 1)


def test_options_tell_workloads_apart_and_repeats_are_put_together() -> None:
    found = figures(compared())
    assert [(key[0], key[3]) for key in found] == [
        ("ysb:campaigns=10", "k-slack"),
        ("ysb:campaigns=10", "aion"),
        ("ysb", "k-slack"),
        ("ysb", "aion"),
    ]
    arm = found["ysb", "EG", "1000", "aion"]
    assert (arm.windows, arm.unbounded, arm.covered) == ((4, 4), 2, 0.75)
    assert arm.within(0.05) == 0.5


def test_a_trial_that_fails_is_noted() -> None:
    failed = [run for run in compared(1)["runs"] if "error" in run]
    assert [run["error"] for run in failed] == ["it broke", "it broke"]


def test_table_and_page_show_every_arm(tmp_path: Path) -> None:
    result = compared(1)
    assert table(result, 0.05).row_count == 4
    page = write_aion_report(result, 0.05, tmp_path).read_text()
    for wanted in ("Mean latency: ysb:campaigns=10, EG", "Distribution of errors", "k-slack"):
        assert wanted in page
