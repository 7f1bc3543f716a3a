"""The micro-batch benchmark: its plan, its statistics, and one tiny run."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.engines.spark.session.profile import SETTINGS
from slackwater_bench.costs.session import plan_arms
from slackwater_bench.costs.session_tables import PHASES, summarise
from slackwater_bench.costs.session_trial import BatchCost


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "slackwater_bench.costs.session", *arguments],
        check=False,
        capture_output=True,
        text=True,
        timeout=280,
    )


def cost(cpu_ms: float) -> BatchCost:
    return BatchCost(
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
            "stock": [cost(100), cost(200), cost(100)],
            "all": [cost(40), cost(80), cost(50)],
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
    for measured in document["runs"]:
        assert measured["batches"] > 0
        assert measured["cpu_ms"] > 0
        assert set(PHASES) <= set(measured["phases_ms"])
        assert measured["threads_ms"]["stream execution"] > 0
