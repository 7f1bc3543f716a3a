"""The plan and the table of queries split between workers, with trials that run nothing."""

from typing import Any

import pytest

from slackwater_bench.journal import Journal
from slackwater_bench.quality import split


def test_arms_alternate_with_a_seed_for_each_round(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[split.SplitTrial] = []

    def run(trial: split.SplitTrial) -> dict[str, Any]:
        seen.append(trial)
        latency_s = {"mean": 1.0, "p50": 1.0, "p99": 2.0}
        return {"latency_s": latency_s, "windows": 4, "wrong": 0, "cores": 1.5}

    monkeypatch.setattr(split, "run", run)
    lines: list[str] = []
    result = split.measure(split.SplitTrial(arm="", queries=3), 2, Journal(), lines.append)
    assert [(t.arm, t.seed) for t in seen] == [
        ("local", 0),
        ("forwarding", 0),
        ("forwarding", 10),
        ("local", 10),
    ]
    assert (result["queries"], result["rate"], result["policy"]) == (3, 1000, "klink")
    assert [run["repeat"] for run in result["runs"]] == [0, 0, 1, 1]
    assert split.table(result).row_count == 4
    assert lines[0].startswith("1 of 4: round 1 of 2, local; ")
