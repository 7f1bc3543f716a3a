"""The workload that fills memory gives exact results all the same."""

import time

import pytest
from pyspark.sql import SparkSession

from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import collect_windows, differences
from slackwater_bench.workloads.catch_up import CatchUp


def test_the_truth_counts_every_event_once() -> None:
    catch_up = CatchUp(traffic=Traffic(start_s=0, stop_s=30, rate="50"), phase_s=0.4)
    truth = catch_up.truth(0, 40_000_000)
    assert sum(number for rows in truth.values() for (number,) in rows) == 1500


@pytest.mark.spark
def test_spark_counts_what_is_true(spark: SparkSession) -> None:
    start_s = time.time() // 1 - 30
    catch_up = CatchUp(traffic=Traffic(start_s=start_s, stop_s=start_s + 12, rate="500"))
    query = (
        catch_up.query(spark, rows_per_batch=2000)
        .writeStream.format("memory")
        .queryName("catch_up")
        .outputMode("append")
        .start()
    )
    try:
        query.processAllAvailable()
        seen = collect_windows(spark.table("catch_up"), catch_up.columns)
        state_rows = max(p["stateOperators"][-1]["numRowsTotal"] for p in query.recentProgress)
    finally:
        query.stop()
    start_us = round(start_s * 1e6)
    expected = catch_up.truth(start_us, start_us + 11_000_000)
    assert len(expected) >= 3
    assert differences(expected, {end: seen[end] for end in seen if end in expected}) == []
    assert state_rows > 1500  # nearly a row an event
