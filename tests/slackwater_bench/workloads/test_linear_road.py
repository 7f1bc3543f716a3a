"""Truth of Linear Road against an obvious loop, and Spark against the truth."""

import time
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pyspark.sql import SparkSession

from slackwater.core.errors import UsageError
from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import WindowRows, collect_windows, differences
from slackwater_bench.workloads.linear_road import LinearRoad

START_S = 1_700_000_000.0
START_US = 1_700_000_000_000_000
VARIANTS = ["statistics", "accidents", "tolls"]

Row = dict[str, int]
Segment = tuple[int, int, int]


def all_reports(road: LinearRoad, until_us: int) -> list[tuple[int, Row]]:
    """Every report with its event time, one by one as the feed reads them."""
    timeline = road.traffic.timeline()
    arrivals = timeline.arrived(START_US - 1, until_us + timeline.delays.max_us)
    found = []
    for place in range(road.traffic.partitions):
        here = arrivals.partition == place
        columns = road.events.columns(place, arrivals.index[here])
        rows = zip(*(column.to_pylist() for column in columns.values()), strict=True)
        named = (dict(zip(columns, row, strict=True)) for row in rows)
        found += zip(arrivals.event_us[here].tolist(), named, strict=True)
    return found


def slow_window(road: LinearRoad, reports: list[Row]) -> dict[str, dict[Segment, Any]]:
    """What the sub-streams say about one window."""
    by_segment: dict[Segment, list[Row]] = defaultdict(list)
    for report in reports:
        by_segment[report["xway"], report["dir"], report["seg"]].append(report)
    statistics, accidents, tolls = {}, {}, {}
    for segment, rows in by_segment.items():
        cars = len({row["vid"] for row in rows})
        speed = sum(row["speed"] for row in rows) // len(rows)
        statistics[segment] = (cars, len(rows), speed)
        still = Counter((r["lane"], r["pos"], r["vid"]) for r in rows if r["speed"] == 0)
        stopped = [(lane, pos) for (lane, pos, _), n in still.items() if n >= road.stopped_reports]
        if max(Counter(stopped).values(), default=0) >= 2:
            accidents[segment] = (len(stopped),)
        entries = sum(entered(row) for row in rows)
        free = segment in accidents or speed >= 40 or cars <= road.crowd
        if entries:
            toll = 0 if free else 2 * (cars - road.crowd) ** 2 * entries
            tolls[segment] = (entries, int(segment in accidents), toll)
    return {"statistics": statistics, "accidents": accidents, "tolls": tolls}


def entered(report: Row) -> bool:
    """Whether the car was in another segment, or nowhere, 30 seconds ago at its speed."""
    driven = report["speed"] * 44
    before = report["pos"] - driven if report["dir"] == 0 else report["pos"] + driven
    return before // 5280 != report["seg"] and report["lane"] != 4


def slow_truth(road: LinearRoad, after_us: int, until_us: int) -> WindowRows:
    """Every window's reports as rows; the last window finds its results by their last moment."""
    reports = all_reports(road, until_us)
    size_us = road.windows.size_us
    early = {
        end: slow_window(road, [row for t, row in reports if end - size_us <= t < end])
        for end in road.windows.ends(after_us - 60_000_000, until_us)
    }
    expected: WindowRows = {}
    for end in road.window_ends(after_us, until_us):
        sums: dict[Segment, Any] = {}
        if road.variant == "tolls":
            for moment, results in ((e - 1, found["tolls"]) for e, found in early.items()):
                if end - road.last_windows.size_us <= moment < end:
                    for segment, values in results.items():
                        sums[segment] = np.add(sums.get(segment, (0, 0, 0)), values).tolist()
        else:
            sums = early[end][road.variant]
        expected[end] = Counter((*segment, *values) for segment, values in sums.items())
    return expected


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize(
    "shape",
    [
        {"xways": 2},
        {"slide_s": None, "phase_s": 0.25, "partitions": 3, "cars": 61, "stopped_reports": 2},
    ],
)
def test_truth_is_what_a_loop_over_all_reports_finds(variant: str, shape: dict[str, Any]):
    shape = dict(shape)
    traffic = Traffic(
        start_s=START_S,
        rate="burst:300:900:every=4:for=2",
        partitions=shape.pop("partitions", 1),
        seed=11,
    )
    road = LinearRoad(traffic=traffic, variant=variant, **{"cars": 150, "crowd": 2} | shape)
    until_us = START_US + 14_000_000
    expected = slow_truth(road, START_US, until_us)
    assert sum(rows.total() for rows in expected.values()) > 0
    assert differences(expected, road.truth(START_US, until_us)) == []
    if variant == "tolls":
        rows = [row for counted in expected.values() for row in counted]
        assert any(row[-1] > 0 for row in rows)
        assert any(row[-2] > 0 for row in rows)


@pytest.mark.parametrize(("window_s", "slide_s"), [(5.0, 3.0), (2.5, 1.0), (3.0, None)])
def test_truth_when_the_last_window_is_a_third(window_s: float, slide_s: float | None):
    road = LinearRoad(
        traffic=Traffic(start_s=START_S, rate="400"),
        window_s=window_s,
        slide_s=slide_s,
        last_window_third=True,
    )
    until_us = START_US + 12_000_000
    truth = road.truth(START_US, until_us)
    assert truth == slow_truth(road, START_US, until_us)
    early = road.windows.ends(START_US, until_us)
    assert 2.9 * len(early) - 3 <= len(truth) <= 3.1 * len(early) + 3


def test_windows_of_the_results():
    traffic = Traffic(start_s=START_S)
    whole = LinearRoad(traffic=traffic, phase_s=0.5)
    third = LinearRoad(traffic=traffic, phase_s=0.5, last_window_third=True)
    ends = whole.windows.ends(START_US, START_US + 20_000_000)
    assert whole.window_ends(START_US, START_US + 20_000_000) == ends
    assert whole.last_windows.size_us == whole.last_windows.slide_us == 3_000_000
    assert set(ends) < set(third.window_ends(START_US, START_US + 20_000_000))
    assert (third.last_windows.size_us, third.last_windows.slide_us) == (1_666_666, 1_000_000)


@pytest.mark.parametrize("variant", VARIANTS)
def test_truth_of_a_window_does_not_depend_on_the_range_asked_for(variant: str):
    road = LinearRoad(traffic=Traffic(start_s=START_S), variant=variant)
    far = START_US + 7_200_000_000
    whole = road.truth(far, far + 30_000_000)
    assert {end: road.truth(end - 1, end)[end] for end in whole} == whole


def test_defaults_give_tolls_and_accidents():
    road = LinearRoad(traffic=Traffic(start_s=START_S))
    windows = list(road.truth(START_US + 10_000_000, START_US + 70_000_000).values())
    assert len(windows) == 20
    assert all(sum(row[-1] > 0 for row in rows) >= 10 for rows in windows)
    assert sum(any(row[-2] for row in rows) for rows in windows) >= 15


def test_columns_are_those_of_the_variant():
    roads = [LinearRoad(traffic=Traffic(start_s=START_S), variant=variant) for variant in VARIANTS]
    assert [road.columns[3] for road in roads] == ["cars", "stopped", "entries"]
    assert LinearRoad.columns == roads[-1].columns  # the default
    assert roads[0] == replace(roads[-1], variant="statistics")


def test_mistakes_are_refused():
    traffic = Traffic(start_s=START_S)
    with pytest.raises(UsageError, match="statistics, accidents, tolls"):
        LinearRoad(traffic=traffic, variant="fines")
    with pytest.raises(UsageError, match="last_window_third"):
        LinearRoad(traffic=traffic, variant="accidents", last_window_third=True)


def finished_traffic(**settings: object) -> Traffic:
    """Fourteen seconds of traffic that are over, so that Spark has a backlog and an end."""
    start_s = time.time() // 1 - 30
    return Traffic(start_s=start_s, stop_s=start_s + 14, **settings)  # type: ignore[arg-type]


def run_on_spark(spark: SparkSession, road: LinearRoad, name: str) -> None:
    """Run until the backlog is gone; each window must be right, and come in one micro-batch."""
    table = f"linear_road_{name}"
    query = (
        road.query(spark, rows_per_batch=2500)
        .writeStream.format("memory")
        .queryName(table)
        .outputMode("append")
        .start()
    )
    try:
        query.processAllAvailable()
        seen = collect_windows(spark.table(table), road.columns)
        progress = query.recentProgress
    finally:
        query.stop()
    start_us = round(road.traffic.start_s * 1e6)
    expected = road.truth(start_us, start_us + 14_000_000 - road.watermark_ms * 1000)
    expected = {end: rows for end, rows in expected.items() if rows}
    # The last event lies just before the stop: a window that ends at its watermark may be out.
    if max(expected) not in seen:
        del expected[max(expected)]
    assert len(expected) >= 3
    assert differences(expected, seen) == []
    watermark_us = 0
    for p in progress:
        before_us, text = watermark_us, p["eventTime"]["watermark"]
        watermark_us = round(datetime.fromisoformat(text).timestamp() * 1e6)
        due = (rows.total() for end, rows in expected.items() if before_us < end <= watermark_us)
        assert p["sink"]["numOutputRows"] == sum(due)
    operators = [operator for p in progress for operator in p["stateOperators"]]
    assert sum(operator["numRowsDroppedByWatermark"] for operator in operators) == 0


@pytest.mark.spark
@pytest.mark.parametrize(
    ("name", "settings", "partitions"),
    [
        ("statistics", {"variant": "statistics", "window_s": 3.0, "slide_s": None}, 1),
        ("accidents", {"variant": "accidents", "phase_s": 0.5}, 1),
        ("tolls", {"xways": 2}, 2),
        ("third", {"last_window_third": True}, 1),
    ],
)
def test_spark_finds_what_is_true(
    spark: SparkSession, name: str, settings: dict[str, Any], partitions: int
):
    traffic = finished_traffic(rate="1000", partitions=partitions)
    run_on_spark(spark, LinearRoad(traffic=traffic, **settings), name)


@pytest.mark.spark
def test_spark_plays_a_file(spark: SparkSession, tmp_path: Path):
    """A file written from generated cars gives what the cars themselves give."""
    traffic = finished_traffic(rate="500")
    cars = LinearRoad(traffic=traffic, variant="statistics")
    columns = cars.events.columns(0, np.arange(7000)).values()
    lines = zip(*(column.to_pylist() for column in columns), *[[-1] * 7000] * 6, strict=True)
    path = tmp_path / "cars.dat"
    path.write_text("\n".join(",".join(map(str, line)) for line in lines))
    road = LinearRoad(traffic=traffic, variant="statistics", file=str(path))
    start_us = round(traffic.start_s * 1e6)
    assert road.truth(start_us, start_us + 14_000_000) == cars.truth(
        start_us, start_us + 14_000_000
    )
    run_on_spark(spark, road, "file")
