"""Truth of the taxi workload against an obvious loop, and Spark against the truth."""

import math
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import WindowRows, collect_windows, differences
from slackwater_bench.workloads.nyc_taxi import NycTaxi
from slackwater_bench.workloads.nyc_taxi_file import COLUMNS
from slackwater_bench.workloads.nyc_taxi_trips import NycTaxiTrips

START_S = 1_700_000_000.0
START_US = 1_700_000_000_000_000


def slow_area(row: dict[str, Any], areas: int) -> int | None:
    """The area of a trip that may be true and begins in the city."""
    for end in ("pickup", "dropoff"):
        longitude, latitude = row[f"{end}_longitude"], row[f"{end}_latitude"]
        if longitude is None or not -74.916578 <= longitude <= -73.120778:
            return None
        if latitude is None or not 40.12971598 <= latitude <= 41.47718278:
            return None
    miles, seconds = row["trip_distance"], row["trip_time_in_secs"]
    if seconds is None or not 1 <= seconds <= 6 * 3600 or not 0.01 <= miles <= 100:
        return None
    if miles / (seconds / 3600) > 100 or not 0.01 <= row["total_amount"] <= 1000:
        return None
    x = math.floor((row["pickup_longitude"] + 74.916578) / 0.005986) + 1
    y = math.floor((41.477182778 - row["pickup_latitude"]) / 0.004491556) + 1
    if not (145 <= x <= 204 and 130 <= y <= 189):
        return None
    side = 60 / areas
    return int((y - 130) / side) * areas + int((x - 145) / side)


def slow_truth(taxi: NycTaxi, after_us: int, until_us: int) -> WindowRows:
    """Every trip as a row, put into every window that holds it."""
    timeline = taxi.traffic.timeline()
    arrivals = timeline.arrived(START_US - 1, until_us + timeline.delays.max_us)
    windows: dict[int, dict[int, list[tuple[int, int]]]] = {
        end: defaultdict(list) for end in taxi.window_ends(after_us, until_us)
    }
    for partition, index, event_us in zip(
        arrivals.partition.tolist(), arrivals.index, arrivals.event_us.tolist(), strict=True
    ):
        columns = taxi.events.columns(partition, np.array([index]))
        row = {name: column[0].as_py() for name, column in columns.items()}
        area = slow_area(row, taxi.areas)
        if area is None:
            continue
        sizes = round(row["total_amount"] * 100), round(row["trip_distance"] * 100)
        for end, by_area in windows.items():
            if end - taxi.windows.size_us <= event_us < end:
                by_area[area].append(sizes)
    return {end: slow_rows(by_area) for end, by_area in windows.items()}


def slow_rows(by_area: dict[int, list[tuple[int, int]]]) -> Counter[tuple[Any, ...]]:
    rows: Counter[tuple[Any, ...]] = Counter()
    for area, sizes in by_area.items():
        trips = len(sizes)
        cents, hundredths = sum(c for c, _ in sizes), sum(h for _, h in sizes)
        means = cents / (100 * trips), hundredths / (100 * trips)
        rows[(area, trips, cents, hundredths, *means)] += 1
    return rows


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    """A file of generated trips, some of them broken and some with empty cells."""
    columns = NycTaxiTrips(seed=8, broken=0.2).columns(0, np.arange(2000))
    rows = []
    for number in range(2000):
        row = {name: column[number].as_py() for name, column in columns.items()}
        row |= {"pickup_datetime": "2013-01-01 00:00:00", "dropoff_datetime": "2013-01-01 00:10:00"}
        if number % 50 == 0:
            row |= {"dropoff_latitude": ""}
        if number % 70 == 0:
            row |= {"trip_time_in_secs": ""}
        rows.append(",".join(str(row[name]) for name in COLUMNS))
    path = tmp_path / "trips.csv"
    path.write_text("\n".join(rows))
    return path


@pytest.mark.parametrize(
    "shape",
    [
        {},
        {"window_s": 2.0, "slide_s": 0.5, "phase_s": 0.25, "areas": 1},
        {"window_s": 1.5, "slide_s": None, "areas": 20},
    ],
)
@pytest.mark.parametrize("partitions", [1, 3])
def test_truth_is_what_a_loop_over_all_trips_gives(shape: dict[str, Any], partitions: int):
    traffic = Traffic(
        start_s=START_S, rate="burst:50:300:every=2:for=0.5", partitions=partitions, seed=11
    )
    taxi = NycTaxi(traffic=traffic, **shape)
    until_us = START_US + 5_000_000
    assert taxi.truth(START_US, until_us) == slow_truth(taxi, START_US, until_us)


def test_truth_of_a_replayed_file(trips: Path):
    taxi = NycTaxi(traffic=Traffic(start_s=START_S, rate="500", partitions=2), file=trips)
    until_us = START_US + 3_000_000
    assert taxi.truth(START_US, until_us) == slow_truth(taxi, START_US, until_us)


def test_the_filter_drops_broken_trips_and_few_others():
    taxi = NycTaxi(traffic=Traffic(start_s=START_S, rate="50000"))
    (rows,) = taxi.truth(START_US + 1_999_999, START_US + 2_000_000).values()
    kept = sum(trips for _, trips, *_ in rows) / 100_000
    assert 0.95 < kept < 0.985


def test_trips_spread_over_areas_and_go_further_from_the_airports():
    taxi = NycTaxi(traffic=Traffic(start_s=START_S, rate="7000"))
    (rows,) = taxi.truth(START_US + 1_999_999, START_US + 2_000_000).values()
    by_area = {area: (trips, mean) for area, trips, _, _, _, mean in rows}
    assert sum(trips >= 100 for trips, _ in by_area.values()) >= 8
    assert max(trips for trips, _ in by_area.values()) < 7000
    midtown, kennedy = 51, 97
    assert by_area[kennedy][1] > 3 * by_area[midtown][1]


@pytest.mark.parametrize("areas", [0, 61])
def test_areas_must_be_possible(areas: int):
    with pytest.raises(UsageError, match="between 1 and 60"):
        NycTaxi(traffic=Traffic(start_s=START_S), areas=areas)


@pytest.mark.spark
def test_a_missing_file_is_refused_before_spark_is_asked(spark: SparkSession, tmp_path: Path):
    taxi = NycTaxi(traffic=Traffic(start_s=START_S), file=tmp_path / "none.csv")
    with pytest.raises(UsageError, match=r"none\.csv"):
        taxi.query(spark)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("partitions", "shape", "replayed"),
    [(1, {}, False), (2, {"window_s": 3.0, "phase_s": 0.5, "areas": 7}, True)],
)
def test_spark_averages_what_is_true(
    spark: SparkSession, trips: Path, partitions: int, shape: dict[str, Any], replayed: bool
):
    start_s = time.time() // 1 - 30  # twelve seconds that are over: a backlog with an end
    traffic = Traffic(start_s=start_s, stop_s=start_s + 12, rate="1000", partitions=partitions)
    taxi = NycTaxi(traffic=traffic, file=trips if replayed else None, **shape)
    name = f"nyt_{partitions}"
    query = (
        taxi.query(spark, rows_per_batch=3000)
        .writeStream.format("memory")
        .queryName(name)
        .outputMode("append")
        .start()
    )
    try:
        query.processAllAvailable()
        assert sum(p["numInputRows"] for p in query.recentProgress) == 12_000
        assert query.lastProgress["stateOperators"][0]["numRowsDroppedByWatermark"] == 0
        seen = collect_windows(spark.table(name), taxi.columns)
    finally:
        query.stop()
    start_us = round(start_s * 1e6)
    expected = taxi.truth(start_us, start_us + 12_000_000 - taxi.watermark_ms * 1000)
    # The last trip ends just before the stop: a window that ends at its watermark may be out.
    if max(expected) not in seen:
        del expected[max(expected)]
    assert len(expected) >= 10
    assert differences(expected, seen) == []
