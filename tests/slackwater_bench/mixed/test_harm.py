"""Fleets that are made to do harm: what they are of, how they are judged, and that each runs."""

from typing import Any

import pytest

from slackwater.report.result import BenchResult
from slackwater_bench.mixed.harm import FLEETS, Bursts, Huge, LongSinks, Triggered, harmful
from slackwater_bench.mixed.trial import MixedTrial
from slackwater_bench.mixed.verdict import verdict
from slackwater_bench.trial import run_in_process
from tests.slackwater_bench.mixed.test_verdict import bars, kind, result, run


def judged(klink_s: float, **changes: Any) -> dict[str, bool]:
    kinds = {"windows of 10 s": kind("latency", klink_s)}
    rival = run("spark", kinds={"windows of 10 s": kind("latency", 2.0)})
    found: BenchResult = result(rival, run("klink", kinds=kinds, **changes), made="sinks")
    return bars(verdict(found))


@pytest.mark.parametrize("fleet", FLEETS)
def test_a_fleet_has_its_queries_by_name(fleet: str) -> None:
    found = MixedTrial("klink", made=fleet).fleet()
    assert found.keys() == harmful(fleet).keys()
    assert len(found) == sum(FLEETS[fleet].values())
    assert any(isinstance(one, LongSinks | Triggered | Huge | Bursts) for one in found.values())


def test_a_tenth_more_than_the_best_of_spark_is_no_harm_and_more_is() -> None:
    assert all(judged(2.19).values())
    missed = [bar for bar, met in judged(2.21).items() if not met]
    assert missed == ["windows of 10 s: of the best rival"]


def test_wrong_results_are_harm() -> None:
    missed = [bar for bar, met in judged(1.0, mistakes={"q": ["wrong"]}).items() if not met]
    assert missed == ["queries with wrong results"]


@pytest.mark.spark
def test_bursts_are_measured_and_right() -> None:
    found = run_in_process(MixedTrial("klink", seconds=12.0, warmup_s=4.0, made="bursts"))
    assert found["mistakes"] == {}
    assert found["failures"] == {}
    assert found["kinds"]["windows over bursts"]["missing"] == 0
    assert found["kinds"]["windows over bursts"]["seconds"]["mean"] > 1
