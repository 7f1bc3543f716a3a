"""Approximate queries: the feed's side without Spark, then whole queries on Spark."""

import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import _parse_datatype_string

from slackwater.core.errors import UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.sources import feed as feed_module
from slackwater.engines.spark.sources.directives import (
    DirectivesFile,
    new_directives_path,
    read_directives,
)
from slackwater.engines.spark.sources.feed import FeedReader, load_feed
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.sampling import CellPlan, Grid, Plan
from slackwater.traffic import Traffic
from slackwater_bench.workloads.kmeans import KMeans
from slackwater_bench.workloads.nyc_taxi import NycTaxi
from slackwater_bench.workloads.ysb import Ysb
from tests.engines.spark.reading import read
from tests.waiting import eventually

START_US = 1_700_000_000_000_000
GRID = Grid(3_000_000, 3_000_000)


class Rows:
    """Payload of the tests: a number."""

    schema = "number long"
    event_time = "time"

    def __init__(self, *, seed: int) -> None:
        pass

    def columns(self, partition: int, index: Any) -> dict[str, pa.Array]:
        return {"number": pa.array(index * 10 + partition)}


def options(path: Path, **traffic: Any) -> FeedOptions:
    usual = {"start_s": START_US / 1e6, "rate": "500", "delays": "exponential:240ms", "seed": 3}
    return FeedOptions(
        traffic=Traffic(**usual | traffic),
        generator=f"{__name__}:Rows",
        sampled=True,
        directives=str(path),
    )


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    clock = SimpleNamespace(us=START_US)
    monkeypatch.setattr(feed_module, "now_us", lambda: clock.us)
    return clock


def reader_of(chosen: FeedOptions, spark: SparkSession) -> FeedReader:
    schema = _parse_datatype_string(chosen.schema())
    return FeedReader(chosen, schema)


@pytest.mark.spark
class TestTheFeedUnderAPlan:
    """Needs no running query, but a session to parse schemas."""

    def test_every_row_is_handed_out_once_and_none_beyond_the_ceiling(
        self, spark: SparkSession, tmp_path: Path, clock: SimpleNamespace
    ) -> None:
        path = tmp_path / "told.json"
        DirectivesFile(path).sample(Plan(GRID, CellPlan(wait_us=400_000), 0))
        reader = reader_of(options(path, partitions=2), spark)
        offset = reader.initialOffset()
        seen: list[int] = []
        for step in range(60):
            clock.us += 170_000 + 13_000 * (step % 7)
            after = reader.latestOffset(offset, ReadAllAvailable())
            rows = read(reader, offset, after)
            assert rows == read(reader, offset, after)
            ceiling_us = after["s"]["ceiling"]
            assert clock.us < ceiling_us + 400_000
            assert all(row["time"].timestamp() * 1e6 < ceiling_us for row in rows)
            seen += [row["number"] for row in rows]
            offset = after
        assert len(seen) == len(set(seen))
        timeline = options(path, partitions=2).traffic.timeline()
        low_us = offset["s"]["ceiling"] - 3_000_000  # all before this has been let out
        arrived = timeline.arrived(START_US - 1, offset["t"])
        expected = arrived.index[arrived.event_us < low_us] * 10
        expected = expected + arrived.partition[arrived.event_us < low_us]
        assert set(expected.tolist()) <= set(seen)

    @settings(max_examples=15, deadline=None)
    @given(rate=st.floats(0.1, 1.0), steps=st.lists(st.integers(1, 4_000_000), max_size=6))
    def test_what_is_kept_does_not_depend_on_how_batches_are_cut(
        self, spark: SparkSession, rate: float, steps: list[int]
    ) -> None:
        path = Path(new_directives_path())
        DirectivesFile(path).sample(Plan(GRID, CellPlan(wait_us=0, rates=(rate,)), 0))
        reader = reader_of(options(path), spark)
        clock_us = START_US
        before = feed_module.now_us
        try:
            numbers = []
            for cuts in (steps, []):
                offset, clock_us, found = reader.initialOffset(), START_US, []
                for step in (*cuts, 30_000_000 - sum(cuts)):
                    clock_us += step
                    feed_module.now_us = lambda now_us=clock_us: now_us
                    after = reader.latestOffset(offset, ReadAllAvailable())
                    rows = read(reader, offset, after)
                    found += [row["number"] for row in rows if row["sample"]["delay"] is not None]
                    offset = after
                numbers.append(sorted(found))
            assert numbers[0] == numbers[1]
        finally:
            feed_module.now_us = before
            path.unlink()

    def test_a_broken_or_missing_plan_samples_nothing(
        self, spark: SparkSession, tmp_path: Path, clock: SimpleNamespace
    ) -> None:
        path = tmp_path / "told.json"
        reader = reader_of(options(path), spark)
        clock.us += 4_000_000
        for content in (None, "{", '{"sample": {"grid": 3}}'):
            if content is not None:
                path.write_text(content)
            assert read_directives(path).sample is None
            after = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
            rows = read(reader, reader.initialOffset(), after)
            assert len(rows) == after["n"]
            assert {row["sample"]["weights"][0] for row in rows} == {1.0}


def started(spark: SparkSession, workload: Any, fleet: Fleet, **wanted: Any) -> DataFrame:
    feed = load_feed(spark, workload.feed_options(sampled=True))
    windows = workload.windows
    return fleet.approximate(
        workload.sampled_rows(feed),
        time=workload.time_column,
        window=f"{windows.size_us} microseconds",
        slide=f"{windows.slide_us} microseconds",
        by=workload.by,
        aggregates=workload.aggregates,
        **wanted,
    )


def promising(spark: SparkSession, table: str) -> list[Row]:
    """Sampled rows that promise a bound, past the first windows, which are not whole."""
    rows = spark.table(table).orderBy("end_us").collect()[3:]
    return [row for row in rows if row.bounded and row.sampling_rate < 0.95]


def flat(results: DataFrame) -> DataFrame:
    return results.select(F.unix_micros("window.end").alias("end_us"), "*").drop("window")


@pytest.mark.spark
@pytest.mark.parametrize(
    ("kind", "own"),
    [
        (Ysb, {"campaigns": 3, "window_s": 1.0}),
        (NycTaxi, {"areas": 1, "window_s": 1.0, "slide_s": 0.5}),
        (KMeans, {"clusters": 4, "window_s": 1.0}),
    ],
)
def test_results_are_within_their_bounds(
    spark: SparkSession, kind: type[Any], own: dict[str, Any]
) -> None:
    traffic = Traffic(
        start_s=time.time(), rate="6000", delays="exponential:60ms", gaps="gamma:2", seed=3
    )
    workload = kind(traffic=traffic, **own)
    name = f"approximate_{workload.name}"
    with Fleet(spark, "klink") as fleet:
        results = flat(started(spark, workload, fleet))
        fleet.start(results.writeStream.format("memory").outputMode("append"), name=name)
        eventually(lambda: len(promising(spark, name)) >= 8, 120, pause_s=0.5)
        assert not fleet.failures
        planner = fleet.planners[0]
    rows = spark.table(name).collect()
    assert len({(row.end_us, *(row[key] for key in workload.by)) for row in rows}) == len(rows)
    errors = [
        workload.error(
            workload.true_values(row.end_us)[tuple(row[key] for key in workload.by)], row.asDict()
        )
        for row in promising(spark, name)
    ]
    assert np.mean(np.array(errors) <= 0.05) >= 0.85
    assert planner.plan.cell.wait_us < 500_000


def _await_batch(query: StreamingQuery, number: int) -> None:
    eventually(lambda: (query.lastProgress or {}).get("batchId", -1) >= number, 60)


@pytest.mark.spark
def test_an_interrupted_query_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path
) -> None:
    """With all rows needed, a result that was computed across a restart is the exact one."""
    traffic = Traffic(start_s=time.time(), rate="300", delays="constant:50ms", seed=3)
    workload = Ysb(traffic=traffic, campaigns=2, window_s=1.0)
    options = workload.feed_options(sampled=True)
    out, checkpoint = str(tmp_path / "out"), str(tmp_path / "checkpoint")
    for attempt in range(3):
        with Fleet(spark, "klink") as fleet:
            rows = workload.sampled_rows(load_feed(spark, options))
            results = fleet.approximate(
                rows,
                time="event_time",
                window="1 second",
                by=["campaign_id"],
                aggregates=workload.aggregates,
                sampler="k-slack",
            )
            writer = flat(results).writeStream.format("parquet").option("path", out)
            writer = writer.option("checkpointLocation", checkpoint)
            query = fleet.start(writer, name="interrupted")
            _await_batch(query, 4 * (attempt + 1))
            query.stop()
    found = spark.read.parquet(out).collect()
    assert len(found) >= 4
    assert len({(row.end_us, row.campaign_id) for row in found}) == len(found)
    for row in found:
        if row.end_us > traffic.start_s * 1e6 + 1e6:
            truth = workload.true_values(row.end_us)[(row.campaign_id,)]
            assert row["count"] == pytest.approx(truth["count"])


@pytest.mark.spark
class TestRefusals:
    def asked(self, spark: SparkSession, **wanted: Any) -> None:
        usual = {"time": "time", "window": "1 second", "aggregates": {"n": "count()"}}
        feed = load_feed(spark, options(Path(new_directives_path())))
        frame = wanted.pop("frame", feed)
        with Fleet(spark, "spark") as fleet:
            fleet.approximate(frame, **usual | wanted)

    def test_what_has_no_bound(self, spark: SparkSession) -> None:
        with pytest.raises(UsageError, match="no error bound holds for max"):
            self.asked(spark, aggregates={"most": "max(number)"})

    def test_columns_that_are_not_there(self, spark: SparkSession) -> None:
        with pytest.raises(UsageError, match="no column 'area'"):
            self.asked(spark, by=["area"])

    def test_a_source_that_cannot_sample(self, spark: SparkSession) -> None:
        frame = spark.readStream.format("rate").load()
        with pytest.raises(UsageError, match="keep that column"):
            self.asked(spark, frame=frame, time="timestamp")

    def test_a_batch_frame(self, spark: SparkSession) -> None:
        with pytest.raises(UsageError, match="needs no approximation"):
            self.asked(spark, frame=spark.range(3).selectExpr("now() as time"))

    def test_impossible_promises(self, spark: SparkSession) -> None:
        with pytest.raises(UsageError, match="error must lie between"):
            self.asked(spark, error=1.5)
        with pytest.raises(UsageError, match="unknown sampler"):
            self.asked(spark, sampler="aeon")


@pytest.mark.spark
def test_any_source_with_arrival_times_is_sampled_by_a_filter(spark: SparkSession) -> None:
    """The feed stands for one: it is not told that its rows are sampled."""
    traffic = Traffic(start_s=time.time(), rate="6000", delays="exponential:60ms", seed=3)
    workload = NycTaxi(traffic=traffic, areas=1, window_s=2.0, slide_s=1.0)
    chosen = replace(workload.feed_options(), arrival=True)
    trips = workload._prepared(load_feed(spark, chosen), "arrival_time")
    with Fleet(spark, "klink") as fleet:
        results = fleet.approximate(
            trips,
            time="dropoff_datetime",
            window="2 seconds",
            slide="1 second",
            by=["area"],
            aggregates=workload.aggregates,
            arrival="arrival_time",
        )
        writer = flat(results).writeStream.format("memory").outputMode("append")
        fleet.start(writer, name="filtered")
        eventually(lambda: len(promising(spark, "filtered")) >= 10, 120, pause_s=0.5)
        assert not fleet.failures
    errors = [
        workload.error(workload.true_values(row.end_us)[(row.area,)], row.asDict())
        for row in promising(spark, "filtered")
    ]
    assert np.mean(np.array(errors) <= 0.05) >= 0.85


@pytest.mark.spark
def test_waiting_beyond_half_the_slide_needs_a_source_of_ours(spark: SparkSession) -> None:
    frame = spark.readStream.format("rate").load().withColumn("seen", F.col("timestamp"))
    wanted = {"time": "timestamp", "window": "1 second", "aggregates": {"n": "count()"}}
    with Fleet(spark, "spark") as fleet:
        fleet.approximate(frame, arrival="seen", **wanted)
        assert fleet.planners[0].sampler.max_wait_s == 0, "nobody holds its batches"
    with Fleet(spark, "klink") as fleet:
        fleet.approximate(frame, arrival="seen", **wanted)
        assert fleet.planners[0].sampler.max_wait_s == 0.5
        with pytest.raises(UsageError, match="'k-slack' waits for all rows"):
            fleet.approximate(frame, arrival="seen", sampler="k-slack", **wanted)
