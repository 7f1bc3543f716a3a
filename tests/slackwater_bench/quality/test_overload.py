"""The figures of an overload, from made-up runs."""

from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.engines.spark.shedding.shedders import Counted
from slackwater.traffic import ConstantDelays, Rate, Timeline
from slackwater_bench.quality import ramp
from slackwater_bench.quality.measurement import Watch
from slackwater_bench.quality.overload import best_fixed, figures, rate_errors, table
from slackwater_bench.quality.report import write_overload_report, write_ramp_report
from slackwater_bench.quality.trial import QualityTrial


def run(lag_s: float, part: float) -> dict[str, Any]:
    """A lag that is large only while it settles, and then as given."""
    lags = [[5.0, 0.5], [25.0, 9.0], [40.0, lag_s], [60.0, lag_s / 2]]
    batches = [[at, 1.0, 1000, round(1000 * part)] for at in (5.0, 35.0, 45.0)]
    looks = [{"rate": 100, "rate_estimate": estimate} for estimate in (None, 100.0, 104.0)]
    samples = [{"at_s": 1.0, "queries": {"knn": look}} for look in looks]
    return {"queries": {"knn": {"lags": lags, "batches": batches}}, "samples": samples}


def result() -> dict[str, Any]:
    runs = {
        "plain": run(120.0, 1.0),
        "slackwater": run(1.4, 0.46),
        "fixed:0.4": run(1.0, 0.4),
        "fixed:0.5": run(1.9, 0.5),
        "fixed:0.6": run(8.0, 0.6),
    }
    return {"capacity": 1000.0, "rate": 2000, "seconds": 60.0, "runs": runs}


def test_settling_does_not_count() -> None:
    assert figures(run(1.4, 0.46)) == {"lag_s": 1.4, "accuracy": pytest.approx(0.46)}


def test_the_best_fixed_rate_is_the_largest_that_keeps_up() -> None:
    assert best_fixed(result()) == "fixed:0.5"
    assert table(result()).row_count == 5


def test_the_rate_is_compared_where_it_was_estimated() -> None:
    found = rate_errors(run(1.4, 0.46))
    assert (found["mean"], found["looks"]) == (pytest.approx(0.02), 2)


def test_the_page_shows_it(tmp_path: Path) -> None:
    text = write_overload_report(result(), tmp_path).read_text()
    assert "fixed:0.5 50%" in text


def test_a_ramp_is_told_level_by_level(tmp_path: Path) -> None:
    batches = [[1.0, 0.5, 100, 100], [25.0, 1.0, 400, 100]]
    lags = [[1.0, 0.4], [25.0, 2.0], [30.0, 1]]
    run = {"queries": {"knn": {"batches": batches, "lags": lags}}, "samples": []}
    made = {"capacity": 100.0, "step_s": 20.0, "runs": {"plain": run, "slackwater": run}}
    first, second = ramp.figures(made, "plain")[:2]
    assert (first["accuracy"], second["accuracy"]) == (1.0, 0.25)
    assert (first["latency_s"], second["lag_s"]) == (pytest.approx(0.7), 2.0)
    assert ramp.table(made).row_count == len(ramp.LEVELS)
    assert "for 20 s" in write_ramp_report(made, tmp_path).read_text()


class _Shedders:
    def count(self, progress: dict[str, Any]) -> Counted:
        return Counted(*progress["counted"])


def test_lag_is_the_age_of_the_oldest_row_that_was_not_taken() -> None:
    timeline = Timeline(Rate((0.0,), (100.0,)), ConstantDelays(0.0), seed=1, start_us=0)
    watch = Watch(timeline, _Shedders())  # type: ignore[arg-type]
    for start_s, rows in ((2, 200), (4, 100)):
        watch.take(
            {
                "timestamp": f"1970-01-01T00:00:0{start_s}.000Z",
                "numInputRows": 0,
                "durationMs": {"addBatch": 1, "triggerExecution": 500},
                "counted": (rows, rows),
            }
        )
    assert [lag for _, lag in watch.lags(5.0)] == pytest.approx([2.0, 2.0, 2.0], abs=0.02)


def test_an_unknown_arm_is_refused() -> None:
    with pytest.raises(UsageError, match="unknown arm"):
        QualityTrial(arm="best")
