"""The comparison of samplers without Spark: which trials, and what becomes of their outcomes."""

from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import EngineError, UsageError
from slackwater_bench.aion.comparison import Compared, compare, plan
from slackwater_bench.aion.figures import figures, table
from slackwater_bench.aion.report import write_aion_report
from slackwater_bench.aion.trial import AionTrial

BASE = AionTrial(sampler="", seed=5)
YSB = ("ysb:campaigns=10", "ysb")
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
    samplers = ("k-slack", "aq-k-slack", "aion")
    return compare(BASE, Compared(workloads=YSB, samplers=samplers, repeat=repeats), run=outcome)


def planned(**changes: Any) -> list[AionTrial]:
    steps = plan(BASE, Compared(**({"workloads": ("ysb",), "samplers": ("aion",)} | changes)))
    return [step.trial for step in steps]  # type: ignore[misc]


def test_arms_alternate_and_share_their_seed_within_a_repeat() -> None:
    trials = planned(samplers=("k-slack", "aion"), repeat=2)
    assert [trial.sampler for trial in trials] == ["k-slack", "aion", "aion", "k-slack"]
    assert [trial.seed for trial in trials] == [5, 5, 6, 6]
    assert {(t.delays, t.gaps) for t in trials} == {("exponential:240ms", "gamma:2")}


def test_a_setting_may_be_written_out() -> None:
    (trial,) = planned(settings=("uniform:0:1s/constant",))
    assert (trial.delays, trial.gaps) == ("uniform:0:1s", "constant")
    with pytest.raises(UsageError, match="unknown setting 'XX'; known: CC, GG, EC, EG"):
        planned(settings=("XX",))


def test_a_workload_without_an_approximate_form_is_refused_before_spark_is_asked() -> None:
    with pytest.raises(UsageError, match="linear-road has no approximate form"):
        planned(workloads=("linear-road",))


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
