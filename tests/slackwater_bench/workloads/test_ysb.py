"""Truth of the Yahoo Streaming Benchmark against an obvious loop, and Spark against the truth."""

import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQuery

from slackwater.core.errors import UsageError
from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import WindowGrid, WindowRows, collect_windows, differences
from slackwater_bench.workloads.ysb import Ysb

START_S = 1_700_000_000.0
START_US = 1_700_000_000_000_000


def slow_truth(ysb: Ysb, after_us: int, until_us: int) -> WindowRows:
    """Every event as a row, put into every window that holds it."""
    timeline = ysb.traffic.timeline()
    arrivals = timeline.arrived(START_US - 1, until_us + timeline.delays.max_us)
    windows: dict[int, Counter[str]] = {
        end: Counter() for end in ysb.window_ends(after_us, until_us)
    }
    campaign = dict(
        zip(ysb.events.ads, np.repeat(ysb.events.campaigns, ysb.ads_per_campaign), strict=True)
    )
    for place, index, event_us in zip(
        arrivals.partition.tolist(),
        arrivals.index.tolist(),
        arrivals.event_us.tolist(),
        strict=True,
    ):
        row = ysb.events.columns(place, np.array([index]))
        if row["event_type"][0].as_py() == "view":
            for end, views in windows.items():
                if end - ysb.windows.size_us <= event_us < end:
                    views[str(campaign[row["ad_id"][0].as_py()])] += 1
    return {end: Counter(views.items()) for end, views in windows.items()}


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"window_s": 2.0, "slide_s": 0.5, "phase_s": 0.25},
        {"window_s": 1.5, "slide_s": 1.0, "campaigns": 3, "ads_per_campaign": 2},
    ],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_truth_is_what_a_loop_over_all_events_counts(shape: dict[str, float], partitions: int):
    traffic = Traffic(
        start_s=START_S, rate="burst:50:300:every=2:for=0.5", partitions=partitions, seed=11
    )
    ysb = Ysb(traffic=traffic, **shape)
    until_us = START_US + 7_000_000
    assert ysb.truth(START_US, until_us) == slow_truth(ysb, START_US, until_us)


def test_truth_of_a_window_does_not_depend_on_the_range_asked_for():
    ysb = Ysb(traffic=Traffic(start_s=START_S))
    far = START_US + 7_200_000_000
    whole = ysb.truth(far, far + 30_000_000)
    assert {end: ysb.truth(end - 1, end)[end] for end in whole} == whole
    assert all(rows.total() == 100 for rows in whole.values())


def test_shares_of_ads_and_event_types():
    events = Ysb(traffic=Traffic(start_s=START_S)).events
    ads, types = events.ads_and_types(0, np.arange(300_000))
    assert np.bincount(types) / 300_000 == pytest.approx([1 / 3] * 3, abs=0.01)
    assert np.bincount(ads, minlength=1000) == pytest.approx(np.full(1000, 300), abs=100)


def test_windows_must_be_possible():
    with pytest.raises(UsageError):
        WindowGrid.of_seconds(1.0, 2.0, 0.0)


def finished_traffic(**settings: object) -> Traffic:
    """Twelve seconds of traffic that are over, so that Spark has a backlog and an end."""
    start_s = time.time() // 1 - 30
    return Traffic(start_s=start_s, stop_s=start_s + 12, **settings)  # type: ignore[arg-type]


def check_results(ysb: Ysb, query: StreamingQuery, seen: WindowRows) -> None:
    """All windows that the watermark has passed are there, and nothing else."""
    start_us = round(ysb.traffic.start_s * 1e6)
    expected = ysb.truth(start_us, start_us + 12_000_000 - ysb.watermark_ms * 1000)
    expected = {end: rows for end, rows in expected.items() if rows}
    # The last event lies just before the stop: a window that ends at its watermark may be out.
    last = max(expected)
    if last not in seen:
        del expected[last]
    assert len(expected) >= 3
    assert differences(expected, seen) == []
    assert query.lastProgress["stateOperators"][0]["numRowsDroppedByWatermark"] == 0


@pytest.mark.spark
@pytest.mark.parametrize(
    ("partitions", "shape"),
    [(1, {}), (3, {"window_s": 4.0, "slide_s": 2.0, "phase_s": 0.5})],
)
def test_spark_counts_what_is_true(spark: SparkSession, partitions: int, shape: dict[str, float]):
    ysb = Ysb(traffic=finished_traffic(rate="500", partitions=partitions), **shape)
    name = f"ysb_{partitions}"
    query = (
        ysb.query(spark, rows_per_batch=1500)
        .writeStream.format("memory")
        .queryName(name)
        .outputMode("append")
        .start()
    )
    try:
        query.processAllAvailable()
        assert all(p["numInputRows"] <= 1500 for p in query.recentProgress)
        assert sum(p["numInputRows"] for p in query.recentProgress) == 6000
        check_results(ysb, query, collect_windows(spark.table(name), ysb.columns))
    finally:
        query.stop()


@pytest.mark.spark
def test_spark_goes_on_from_its_checkpoint(spark: SparkSession, tmp_path: Path):
    ysb = Ysb(traffic=finished_traffic(rate="500", delays="zipf:0.99:300ms"))
    out = str(tmp_path / "out")

    def start() -> StreamingQuery:
        return (
            ysb.query(spark, rows_per_batch=900)
            .writeStream.format("parquet")
            .option("path", out)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .outputMode("append")
            .start()
        )

    first = start()
    deadline = time.monotonic() + 60
    while not first.recentProgress and time.monotonic() < deadline:
        time.sleep(0.02)
    first.stop()
    rows_before = sum(p["numInputRows"] for p in first.recentProgress)
    assert 0 < rows_before < 6000

    second = start()
    try:
        second.processAllAvailable()
        seen = collect_windows(spark.read.parquet(out), ysb.columns)
        check_results(ysb, second, seen)
    finally:
        second.stop()
