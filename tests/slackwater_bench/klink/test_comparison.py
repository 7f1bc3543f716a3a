"""The plan of a comparison: order, counts, sweep, failures, resuming. No Spark runs here."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from slackwater.core import EngineError, UsageError
from slackwater.report.result import BenchResult
from slackwater_bench.journal import Journal
from slackwater_bench.klink.comparison import compare
from slackwater_bench.klink.table import table
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.klink.trigger_sweep import INTERVALS_S
from slackwater_bench.rivals import arms

Runner = Callable[[PolicyTrial], dict[str, Any]]


def outcome(mean: float = 1.0, drained: bool = True) -> dict[str, Any]:
    return {
        "latency_s": {"mean": mean, "p50": mean, "p90": mean, "p99": mean, "max": mean},
        "latencies_s": [mean, mean],
        "windows": {"expected": 2, "emitted": 2, "wrong": 0},
        "throughput_eps": 10.0,
        "batches": 4,
        "wasted": 1,
        "cpu_s": 2.0,
        "controller_cpu_s": 0.1,
        "drained": drained,
    }


class Recorder:
    """Runs nothing and remembers what it was asked for."""

    def __init__(self, answer: Runner = lambda trial: outcome()) -> None:
        self.answer = answer
        self.trials: list[PolicyTrial] = []

    def __call__(self, trial: PolicyTrial) -> dict[str, Any]:
        self.trials.append(trial)
        return self.answer(trial)


def compared(names: str, run: Runner, **options: Any) -> BenchResult:
    chosen = arms(names.split(","), PolicyTrial("", seconds=20, seed=options.pop("seed", 5)))
    return compare(
        chosen, options.pop("counts", [4]), options.pop("repeats", 1), run=run, **options
    )


def test_each_count_arm_and_repeat_is_a_trial_in_alternating_order() -> None:
    run = Recorder()
    result = compared("spark,fcfs", run, counts=[4, 8, 4], repeats=2)
    seen = [(r["repeat"], r["queries"], r["policy"]) for r in result["runs"]]
    assert seen == [
        (0, 4, "spark"), (0, 4, "fcfs"), (0, 8, "spark"), (0, 8, "fcfs"),
        (1, 4, "fcfs"), (1, 4, "spark"), (1, 8, "fcfs"), (1, 8, "spark"),
    ]  # fmt: skip
    assert [trial.queries for trial in run.trials] == [queries for _, queries, _ in seen]
    assert [trial.seed for trial in run.trials] == [5] * 4 + [6] * 4
    assert result["query_counts"] == [4, 8]
    assert result["queries"] == result["settings"]["queries"] == 8


def test_the_sweep_comes_first_and_chooses_by_mean_latency() -> None:
    means = dict(zip(INTERVALS_S, (4.0, 3.0, 2.0, 1.0, 5.0), strict=True))
    run = Recorder(lambda t: outcome(means[t.trigger_s or 3.0], drained=t.trigger_s != 2.0))
    result = compared("spark-trigger,fcfs", run, counts=[4, 8])
    sweep, measured = run.trials[:5], run.trials[5:]
    assert {trial.queries for trial in sweep} == {8}
    assert {trial.seconds for trial in sweep} == {15.0}
    assert not {trial.seed for trial in sweep} & {trial.seed for trial in measured}
    # 2 s has the least mean, but of the windows that came: it did not keep up.
    assert [trial.trigger_s for trial in measured] == [1.5, None, 1.5, None]
    assert [entry["trigger_s"] for entry in result["trigger_sweep"]] == list(INTERVALS_S)
    assert result["trigger_sweep"][0]["latency_s"]["mean"] == 4.0


def test_without_the_arm_there_is_no_sweep() -> None:
    run = Recorder()
    assert compared("spark-trigger:1.5", run)["trigger_sweep"] == []
    assert [trial.trigger_s for trial in run.trials] == [1.5]


def failing(policy: str) -> Runner:
    def answer(trial: PolicyTrial) -> dict[str, Any]:
        if trial.policy == policy:
            raise EngineError(f"a trial of {policy} failed: the JVM died")
        return outcome()

    return answer


def test_a_trial_that_fails_is_noted_and_the_others_go_on() -> None:
    result = compared("spark,fcfs", Recorder(failing("spark")), repeats=2)
    failed = [run for run in result["runs"] if "error" in run]
    assert [run["error"] for run in failed] == ["a trial of spark failed: the JVM died"] * 2
    assert len(result["runs"]) == 4
    assert "spark (2 of 2 failed)" in render(result)


def test_a_sweep_of_which_nothing_ran_leaves_its_arm_out() -> None:
    run = Recorder(failing("spark"))
    result = compared("spark-trigger,fcfs", run)
    assert "no trigger interval" in result["runs"][0]["error"]
    assert len(run.trials) == 5 + 1
    assert "error" not in result["runs"][1]


def test_other_exceptions_are_not_swallowed() -> None:
    def broken(trial: PolicyTrial) -> dict[str, Any]:
        raise KeyError("a mistake of ours")

    with pytest.raises(KeyError):
        compared("fcfs", broken)


def test_results_are_saved_after_every_trial(tmp_path: Path) -> None:
    file, seen = tmp_path / "new" / "out.json", []

    def answer(trial: PolicyTrial) -> dict[str, Any]:
        seen.append(len(json.loads(file.read_text())["runs"]) if file.exists() else 0)
        return outcome()

    result = compared("spark,fcfs,round-robin", answer, journal=Journal(file))
    assert seen == [0, 1, 2]
    assert json.loads(file.read_text()) == result
    assert [path.name for path in file.parent.iterdir()] == ["out.json"]


def test_resuming_runs_only_what_is_missing(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    names = "spark-trigger,spark,fcfs"

    def crash(trial: PolicyTrial) -> dict[str, Any]:
        if trial.policy == "fcfs":
            raise KeyboardInterrupt
        return outcome(mean=trial.trigger_s or 9.0)

    with pytest.raises(KeyboardInterrupt):
        compared(names, crash, journal=Journal(file))
    run, lines = Recorder(), list[str]()
    result = compared(names, run, journal=Journal(file, resume=True), show=lines.append)
    assert [trial.policy for trial in run.trials] == ["fcfs"]
    assert [line.partition(";")[0] for line in lines] == ["1 of 1: fcfs, 4 queries, repeat 1"]
    assert [entry["policy"] for entry in result["runs"]] == names.split(",")
    assert result["runs"][0]["trial"]["trigger_s"] == 0.5
    assert json.loads(file.read_text()) == result


def test_resuming_tries_failed_trials_again_and_may_add_arms(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    compared("spark,fcfs", failing("spark"), journal=Journal(file))
    run = Recorder()
    result = compared(
        "spark,fcfs,round-robin", run, counts=[4, 8], journal=Journal(file, resume=True)
    )
    assert len(result["runs"]) == 6
    ran = [(trial.policy, trial.queries) for trial in run.trials]
    assert ("fcfs", 4) not in ran
    assert ("spark", 4) in ran
    assert len(ran) == 5


def test_resuming_never_throws_results_away(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    compared("spark,fcfs", Recorder(), journal=Journal(file))
    before = file.read_text()
    for names, seed in (("fcfs", 5), ("spark,fcfs", 6)):
        with pytest.raises(UsageError, match="that were not asked for"):
            compared(names, Recorder(), seed=seed, journal=Journal(file, resume=True))
    assert file.read_text() == before


def test_without_resume_a_file_is_replaced(tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    compared("spark", Recorder(), journal=Journal(file))
    run = Recorder()
    compared("spark", run, journal=Journal(file))
    assert len(run.trials) == 1


@pytest.mark.parametrize(("text", "message"), [("{", "is not JSON"), ("[]", "is not a result")])
def test_a_broken_file_is_one_clear_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "out.json").write_text(text)
    with pytest.raises(UsageError, match=message) as caught:
        Journal(tmp_path / "out.json", resume=True)
    assert "\n" not in str(caught.value)


def test_resuming_needs_a_file_but_it_may_be_new(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="needs --json"):
        Journal(None, resume=True)
    assert Journal(tmp_path / "new.json", resume=True).entries("runs") == []


def test_every_step_says_what_it_is_and_what_is_left() -> None:
    lines: list[str] = []
    compared("spark,fcfs", Recorder(), counts=[2], repeats=2, show=lines.append)
    assert len(lines) == 4
    assert lines[0].startswith("1 of 4: spark, 2 queries, repeat 1; 0:00 gone, about ")
    assert lines[3].startswith("4 of 4: spark, 2 queries, repeat 2; ")


def render(result: dict[str, Any]) -> str:
    console = Console(width=200, record=True, file=StringIO())
    console.print(table(result))
    return console.export_text()


def test_the_table_has_a_block_for_each_count_with_its_own_reference() -> None:
    means = {("spark", 4): 2.0, ("fcfs", 4): 1.0, ("spark", 8): 8.0, ("fcfs", 8): 2.0}
    run = Recorder(lambda trial: outcome(means[trial.policy, trial.queries]))
    grid = table(compared("spark,fcfs", run, counts=[4, 8]))
    shown = {"queries", "policy", "mean s", "mean ÷ first"}
    columns = [column.cells for column in grid.columns if column.header in shown]
    assert list(zip(*columns, strict=True)) == [
        ("4", "spark", "2.00", "1.00"),
        ("4", "fcfs", "1.00", "0.50"),
        ("8", "spark", "8.00", "1.00"),
        ("8", "fcfs", "2.00", "0.25"),
    ]
