"""``slackwater bench versus``: its plan and its messages without an engine; its shortest trial."""

import json
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
from typer.testing import CliRunner, Result

from slackwater.core import EngineError, SlackwaterError, UsageError
from slackwater.traffic import Traffic
from slackwater_bench import comparison, kafka_broker
from slackwater_bench.commands import bench
from slackwater_bench.flink import find_flink, kafka_connector
from slackwater_bench.testing import check_workload
from slackwater_bench.trial import run_in_process
from slackwater_bench.versus.ad_views import AdViews
from slackwater_bench.versus.flink_engine import ad_views_statements
from slackwater_bench.versus.trial import VersusTrial

OUTCOME: dict[str, Any] = {
    "seconds": 6.0,
    "ready_s": 1.0,
    "latencies_s": [0.5, 0.7],
    "windows": {"expected": 2, "emitted": 2, "wrong": 0},
    "rows_written": 60,
    "cpu_s": 3.0,
    "source_cpu_s": {"broker": 0.2, "producer": 0.1},
    "memory_bytes": 10**9,
    "late_s": 0.01,
}


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[VersusTrial]:
    """Those that were run, in no time; four queries in Real-Time Mode fail."""
    seen: list[VersusTrial] = []

    def run(trial: VersusTrial) -> dict[str, Any]:
        seen.append(trial)
        if trial.arm == "real-time" and trial.queries == 4:
            raise EngineError("a trial of real-time failed: not enough slots")
        return OUTCOME

    monkeypatch.setattr(comparison, "run_in_process", run)
    monkeypatch.setattr(kafka_broker, "require", lambda: None)
    return seen


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(bench, ["versus", *arguments])


def test_all_arms_take_turns_at_every_size(trials: list[VersusTrial], tmp_path: Path) -> None:
    file = tmp_path / "out.json"
    done = invoke(
        "--arms", "klink,spark", "--queries", "1,2", "--repeat", "2", "--json", str(file),
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert [(trial.arm, trial.queries, trial.seed) for trial in trials] == [
        ("klink", 1, 1), ("spark", 1, 1), ("klink", 2, 1), ("spark", 2, 1),
        ("spark", 1, 2), ("klink", 1, 2), ("spark", 2, 2), ("klink", 2, 2),
    ]  # fmt: skip
    assert "0.60" in done.output
    assert len(json.loads(file.read_text())["runs"]) == len(trials)


def test_an_arm_that_cannot_run_at_a_size_is_told_in_a_line(trials: list[VersusTrial]) -> None:
    done = invoke("--arms", "real-time", "--queries", "2,4")
    assert isinstance(done.exception, SlackwaterError)
    assert str(done.exception) == "1 of 2 trials failed"
    assert "failed: real-time, 4 queries, repeat 1: a trial of real-time failed" in done.output


def test_an_unknown_arm_is_refused(trials: list[VersusTrial]) -> None:
    done = invoke("--arms", "klink,storm")
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_status == 2
    assert "--arms takes klink, " in str(done.exception)
    assert not trials


def test_without_its_connector_flink_is_refused(
    trials: list[VersusTrial], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lib").mkdir()
    monkeypatch.setenv("SLACKWATER_FLINK", str(tmp_path))
    monkeypatch.setenv("VENV", str(tmp_path))
    done = invoke("--arms", "klink,flink")
    assert isinstance(done.exception, UsageError)
    assert "scripts/flink.sh" in str(done.exception)
    assert not trials


def test_the_truth_of_views_needs_no_spark() -> None:
    check_workload(AdViews, campaigns=3)


def test_flink_has_the_same_windows() -> None:
    workload = AdViews(traffic=Traffic(start_s=0, delays="uniform:0:300ms"), phase_s=1.25)
    *_, insert = ad_views_statements("q", workload, "127.0.0.1:1")
    assert "SIZE => INTERVAL '3.000' SECOND, `OFFSET` => INTERVAL '1.250' SECOND" in insert


def test_a_query_that_has_ended_with_an_error_ends_the_trial(tmp_path: Path) -> None:
    from slackwater_bench.versus.spark_engine import SparkEngine

    engine = SparkEngine(VersusTrial(arm="real-time", queries=1), tmp_path)
    dead = Mock(exception=Mock(return_value="only 0 slots\nare free"))
    dead.name = "q000"
    engine._fleet, engine._queries = None, [Mock(exception=Mock(return_value=None)), dead]
    with pytest.raises(EngineError, match="q000 failed: only 0 slots are free"):
        engine.check()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("arm", ["klink", "real-time"])
def test_windows_are_right(arm: str) -> None:
    if (missing := kafka_broker.why_missing()) is not None:
        pytest.skip(missing)
    check_shortest(arm)


@pytest.mark.kafka
@pytest.mark.flink
def test_windows_of_flink_are_right() -> None:
    if (missing := kafka_broker.why_missing()) is not None:
        pytest.skip(missing)
    try:
        find_flink(), kafka_connector()
    except UsageError as error:
        pytest.skip(str(error))
    check_shortest("flink")


def check_shortest(arm: str) -> None:
    trial = VersusTrial(
        arm=arm, queries=1, seconds=4.0, warmup_s=0.0, rate="300", window_s=1.0, checkpoint_s=5.0
    )
    found = run_in_process(trial)
    assert found["windows"] == {"expected": 4, "emitted": 4, "wrong": 0}
    assert len(found["latencies_s"]) == 4
    assert set(found["source_cpu_s"]) == {"broker", "producer"}
