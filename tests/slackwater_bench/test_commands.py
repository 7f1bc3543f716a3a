"""``slackwater bench`` as users type it, with trials that run nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from slackwater.core import EngineError, SlackwaterError, UsageError
from slackwater_bench import comparison, kafka_broker
from slackwater_bench.commands import bench
from slackwater_bench.klink.trial import PolicyTrial
from tests.slackwater_bench.klink.test_comparison import outcome


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[PolicyTrial]:
    """Those that were run; one of round-robin fails."""
    seen: list[PolicyTrial] = []

    def run(trial: PolicyTrial) -> dict[str, Any]:
        seen.append(trial)
        if trial.policy == "round-robin":
            raise EngineError("a trial of round-robin failed: the JVM died")
        return outcome()

    monkeypatch.setattr(comparison, "run_in_process", run)
    return seen


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bench, arguments)


@pytest.mark.parametrize("workload", ["ysb", "linear-road", "nyc-taxi"])
def test_all_workloads_have_the_same_options(workload: str, trials: list[PolicyTrial]) -> None:
    done = invoke(workload, "--policies", "fcfs,spark-fair", "--queries", "2,4", "--window", "6")
    assert done.exit_code == 0, done.output
    assert {trial.workload for trial in trials} == {workload}
    assert [(t.policy, t.queries, t.fair) for t in trials] == [
        ("fcfs", 2, False),
        ("spark", 2, True),
        ("fcfs", 4, False),
        ("spark", 4, True),
    ]
    assert {trial.window_s for trial in trials} == {6.0}


def test_a_failure_is_told_at_the_end_and_all_results_are_kept(
    tmp_path: Path, trials: list[PolicyTrial]
) -> None:
    file = tmp_path / "out.json"
    done = invoke("ysb", "--policies", "round-robin,fcfs", "--json", str(file))
    assert isinstance(done.exception, SlackwaterError)
    assert done.exception.exit_status == 1
    assert str(done.exception) == "1 of 2 trials failed"
    assert "failed: round-robin, 8 queries, repeat 1: a trial of round-robin" in done.output
    assert len(json.loads(file.read_text())["runs"]) == 2
    assert len(trials) == 2


def test_a_report_is_written_and_named(tmp_path: Path, trials: list[PolicyTrial]) -> None:
    done = invoke("ysb", "--policies", "fcfs", "--report", str(tmp_path / "page"))
    assert done.exit_code == 0, done.output
    assert (tmp_path / "page" / "index.html").exists()
    assert "report: " in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("ysb", "--queries", "few"), "--queries takes numbers from 1"),
        (("ysb", "--queries", "4,0"), "--queries takes numbers from 1"),
        (("ysb", "--resume"), "--resume needs --json"),
        (("nyc-taxi", "--slide", "9"), "slide"),
        (("estimators", "--confidence", "95"), "--confidence takes shares"),
    ],
)
def test_wrong_input(arguments: tuple[str, ...], message: str, trials: list[PolicyTrial]) -> None:
    done = invoke(*arguments)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert trials == []


def test_estimators(tmp_path: Path) -> None:
    file = tmp_path / "estimators.json"
    done = invoke(
        "estimators", "--epochs", "20", "--delays", "uniform:0:300ms", "--confidence", "0.9",
        "--json", str(file), "--report", str(tmp_path / "page"),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    result = json.loads(file.read_text())
    assert result["epochs"] == 20
    assert {row["confidence"] for row in result["rows"]} == {0.9}
    assert (tmp_path / "page" / "index.html").exists()


OVER_KAFKA = (("ysb", "--source", "kafka"), ("backlog",), ("rate",), ("versus",))


@pytest.mark.parametrize("arguments", OVER_KAFKA)
def test_without_a_broker_nothing_is_begun_over_kafka(
    arguments: tuple[str, ...],
    tmp_path: Path,
    trials: list[PolicyTrial],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_broker, "JARS", tmp_path)
    done = invoke(*arguments)
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_status == 2
    assert "scripts/kafka.sh" in str(done.exception)
    (tmp_path / "complete").touch()
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    done = invoke(*arguments)
    assert isinstance(done.exception, UsageError)
    assert str(done.exception).startswith("no Java")
    assert not trials
