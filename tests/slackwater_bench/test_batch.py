"""The micro-batch benchmark: its plan, its statistics, and one tiny run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.engines.spark.session.profile import SETTINGS
from slackwater_bench.arm import ArmResult
from slackwater_bench.batch import plan_arms
from slackwater_bench.batch_report import PHASES, summarise


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "slackwater_bench.batch", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )


def result(name: str, cpu_ms: float) -> ArmResult:
    return ArmResult(
        name=name,
        batches=10,
        cpu_ms=cpu_ms,
        batches_per_s=1.0,
        forked_ms=0.0,
        threads_ms={},
        phases_ms={},
    )


def test_every_setting_is_tried_alone_and_left_out() -> None:
    names = [setting.name for setting in SETTINGS]
    arms = dict(plan_arms(names))
    assert arms["stock"] == ()
    assert arms["all"] == tuple(names)
    for name in names:
        assert arms[name] == (name,)
        assert set(arms[f"-{name}"]) == set(names) - {name}


def test_ratios_pair_the_runs_of_one_repeat() -> None:
    # The machine was twice as slow in the second repeat; the ratio must not see it.
    rows = summarise(
        {
            "stock": [result("stock", 100), result("stock", 200), result("stock", 100)],
            "all": [result("all", 40), result("all", 80), result("all", 50)],
        },
        baseline="stock",
    )
    stock, tuned = rows
    assert stock.ratio == 1.0
    assert (tuned.ratio_low, tuned.ratio, tuned.ratio_high) == (0.4, 0.4, 0.5)
    assert (tuned.cpu_ms_low, tuned.cpu_ms, tuned.cpu_ms_high) == (40, 50, 80)


@pytest.mark.parametrize(
    "arguments", [["--settings", "no-such-thing"], ["--arms", "stock,none-such"]]
)
def test_unknown_names_are_refused_in_one_line(arguments: list[str]) -> None:
    answer = run(*arguments)
    assert answer.returncode == 2
    assert len(answer.stderr.strip().splitlines()) == 1
    assert "unknown" in answer.stderr


@pytest.mark.spark
def test_a_tiny_run_has_every_arm_and_phase(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    answer = run(
        *("--settings", "no-adaptive", "--arms", "stock,all", "--repeats", "1"),
        *("--seconds", "3", "--queries", "1", "--warmup", "2", "--phases", "--json", str(file)),
    )
    assert answer.returncode == 0, answer.stderr[-2000:]
    assert "ratio" in answer.stdout
    document = json.loads(file.read_text())
    assert [row["name"] for row in document["summary"]] == ["stock", "all"]
    for (measured,) in document["runs"].values():
        assert measured["batches"] > 0
        assert measured["cpu_ms"] > 0
        assert set(PHASES) <= set(measured["phases_ms"])
        assert measured["threads_ms"]["stream execution"] > 0
