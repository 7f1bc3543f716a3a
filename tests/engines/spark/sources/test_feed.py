"""The feed's reader without Spark, and the feed inside Spark."""

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StringType, StructField, StructType, TimestampType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources import feed as feed_module
from slackwater.engines.spark.sources import frontier as frontier_module
from slackwater.engines.spark.sources.feed import FeedReader, FeedSource, feed
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.frontier import FeedFrontier, NoFrontier
from slackwater.traffic import Traffic
from tests.engines.spark.reading import read

START_S = 1_700_000_000.0
START_US = 1_700_000_000_000_000

YSB = "slackwater_bench.workloads.ysb_events:YsbEvents"
COLUMNS = ("user_id", "page_id", "ad_id", "ad_type", "event_type", "ip_address")
SCHEMA = StructType(
    [StructField(name, StringType()) for name in COLUMNS]
    + [StructField("event_time", TimestampType()), StructField("arrival_time", TimestampType())]
)
TRAFFIC = Traffic(start_s=START_S, rate="1000", partitions=2, seed=3)
OPTIONS = FeedOptions(traffic=TRAFFIC, generator=YSB, arrival=True)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that stands still five seconds after the start."""
    clock = SimpleNamespace(us=START_US + 5_000_000)
    monkeypatch.setattr(feed_module, "now_us", lambda: clock.us)
    return clock


def test_latest_offset_is_what_has_arrived(clock: SimpleNamespace):
    reader = FeedReader(OPTIONS, SCHEMA)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    rows = read(reader, reader.initialOffset(), end)
    assert end == reader.reportLatestOffset() == {"t": clock.us, "n": len(rows)}
    assert 4700 < end["n"] < 5000


def test_rows_do_not_overtake_and_are_not_early(clock: SimpleNamespace):
    reader = FeedReader(OPTIONS, SCHEMA)
    rows = read(reader, reader.initialOffset(), reader.reportLatestOffset())
    assert all(row["event_time"] <= row["arrival_time"] for row in rows)
    assert max(row["arrival_time"].timestamp() for row in rows) <= clock.us / 1e6


@pytest.mark.parametrize("limit", [1, 700, 10**9])
def test_limit_leaves_a_backlog_that_the_offsets_show(clock: SimpleNamespace, limit: int):
    reader = FeedReader(OPTIONS, SCHEMA)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(limit))
    taken = len(read(reader, start, end))
    assert taken == end["n"] <= limit
    left = reader.reportLatestOffset()["n"] - end["n"]
    assert left == len(read(reader, end, reader.reportLatestOffset()))


@given(limits=st.lists(st.integers(1, 2500), min_size=2, max_size=12))
@settings(max_examples=10, deadline=None)
def test_any_batches_give_the_same_rows(limits: list[int]):
    reader = FeedReader(replace(OPTIONS, traffic=replace(TRAFFIC, stop_s=START_S + 3)), SCHEMA)
    start, pieces = reader.initialOffset(), []
    for limit in limits:
        end = reader.latestOffset(start, ReadMaxRows(limit))
        pieces += read(reader, start, end)
        start = end
    whole = read(reader, reader.initialOffset(), start)
    key: Callable[[dict[str, Any]], str] = repr
    assert sorted(pieces, key=key) == sorted(whole, key=key)


def test_offset_stands_still_while_nothing_arrives(clock: SimpleNamespace):
    """A new offset without rows would make Spark run an empty micro-batch."""
    reader = FeedReader(replace(OPTIONS, traffic=replace(TRAFFIC, stop_s=START_S + 1)), SCHEMA)
    end = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert end["n"] == 1000
    clock.us += 60_000_000
    assert reader.latestOffset(end, ReadAllAvailable()) == end
    assert reader.latestOffset(end, ReadMaxRows(5)) == end


def test_partitions_without_rows_get_no_task(clock: SimpleNamespace):
    traffic = replace(TRAFFIC, partitions=8, rate="2", delays="constant:0ms")
    reader = FeedReader(replace(OPTIONS, traffic=traffic), SCHEMA)
    clock.us = START_US + 1_000_000
    start, end = reader.initialOffset(), reader.reportLatestOffset()
    assert [p.partition for p in reader.partitions(start, end)] == [0, 1, 2]
    assert len(read(reader, start, end)) == 3
    assert len(reader.partitions(end, end)) == 1
    assert read(reader, end, end) == []


def test_a_batch_reads_what_the_frontier_has_told_even_if_the_clock_goes_back(
    clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """Else rows within their delay would be behind a watermark that nothing read has made."""
    monkeypatch.setattr(frontier_module, "now_us", lambda: clock.us)
    options = replace(OPTIONS, directives=str(tmp_path / "told.json"))
    newest_us = FeedFrontier(options).newest_us()
    clock.us -= 2_000_000
    reader = FeedReader(options, SCHEMA)
    start = reader.initialOffset()
    rows = read(reader, start, reader.latestOffset(start, ReadAllAvailable()))
    assert newest_us == max(round(row["event_time"].timestamp() * 1e6) for row in rows)
    FeedFrontier(options).newest_us()  # an earlier time takes nothing back
    assert read(reader, start, reader.latestOffset(start, ReadAllAvailable())) == rows


def test_a_feed_that_cannot_be_told_how_far_to_read_has_no_frontier():
    with pytest.raises(NoFrontier, match="no file"):
        FeedFrontier(OPTIONS)


class Wrong:
    """A generator whose columns are not those of its schema."""

    event_time = "at"

    def __init__(self, seed: int, schema: str) -> None:
        self.schema = schema

    def columns(self, partition: int, index: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {"word": pa.array(["many"] * len(index))}


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("word", LongType(), "Wrong makes 'word' as string, which its schema has as int64"),
        ("words", StringType(), "Wrong makes no column 'words'"),
    ],
)
def test_a_generator_that_differs_from_its_schema_is_one_clear_line(
    clock: SimpleNamespace, name: str, kind: Any, message: str
):
    arguments = json.dumps({"schema": f"{name} {kind.simpleString()}"})
    options = replace(OPTIONS, generator=f"{__name__}:Wrong", arguments=arguments, arrival=False)
    schema = StructType([StructField(name, kind), StructField("at", TimestampType())])
    reader = FeedReader(options, schema)
    with pytest.raises(UsageError, match=message):
        read(reader, reader.initialOffset(), reader.reportLatestOffset())


def test_available_now_does_not_follow_the_clock(clock: SimpleNamespace):
    reader = FeedReader(OPTIONS, SCHEMA)
    reader.prepareForTriggerAvailableNow()
    target = reader.reportLatestOffset()
    clock.us += 10_000_000
    assert reader.latestOffset(reader.initialOffset(), ReadAllAvailable()) == target
    assert reader.latestOffset(target, ReadAllAvailable()) == target


def test_checkpoint_of_other_traffic_is_refused(clock: SimpleNamespace):
    end = FeedReader(OPTIONS, SCHEMA).reportLatestOffset()
    other = FeedReader(replace(OPTIONS, traffic=replace(TRAFFIC, rate="900")), SCHEMA)
    with pytest.raises(UsageError, match="other traffic"):
        other.latestOffset(end, ReadAllAvailable())


def test_options_survive_the_way_through_spark(tmp_path: Path):
    trace = tmp_path / "trace.csv"
    trace.write_text("0,100\n2,300\n")
    options = replace(
        OPTIONS,
        traffic=replace(TRAFFIC, rate=f"trace:{trace}", stop_s=START_S + 9.5),
        arguments='{"campaigns": 7}',
        rows_per_batch=5,
        knob="/tmp/knob",
    )
    back = FeedOptions.from_texts(options.texts())
    assert back.traffic.rate == "steps:0.0=100.0,2.0=300.0"
    assert replace(back, traffic=replace(back.traffic, rate=options.traffic.rate)) == options


class Numbers:
    """A user's own generator: the event's index."""

    schema = "number long"
    event_time = "at"

    def __init__(self, *, seed: int, factor: int = 1) -> None:
        self.factor = factor

    def columns(self, partition: int, index: NDArray[np.int64]) -> dict[str, pa.Array]:
        return {"number": pa.array(index * self.factor)}


def test_source_has_the_columns_of_the_generator(clock: SimpleNamespace):
    options = FeedOptions(
        traffic=replace(TRAFFIC, partitions=1),
        generator=f"{__name__}:Numbers",
        arguments='{"factor": 2}',
    )
    assert options.schema() == "number long, at timestamp"
    source = FeedSource(options.texts())
    schema = StructType([StructField("number", LongType()), StructField("at", TimestampType())])
    reader = source.streamReader(schema)
    rows = read(reader, reader.initialOffset(), reader.reportLatestOffset())
    assert {row["number"] for row in rows} >= {0, 2, 4, 6, 8}
    assert set(rows[0]) == {"number", "at"}


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"generator": "nowhere:Nothing"}, "no module named 'nowhere'"),
        ({"generator": "json"}, "not of the form module:attribute"),
        ({"arguments": {"colour": 3}}, "refuses its arguments"),
        ({"rate": "fast"}, "names no rate"),
        ({"delays": "slow"}, "names no network delays"),
        ({"partitions": 0}, "at least 1 partition"),
        ({"start": 10.0, "stop": 5.0}, "before it starts"),
        ({"rows_per_batch": 0}, "rows_per_batch"),
    ],
)
def test_wrong_options_are_refused_before_spark_is_asked(wrong: dict[str, Any], message: str):
    with pytest.raises(UsageError, match=message):
        feed(None, **({"generator": YSB} | wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize("texts", [{}, {"generator": YSB}, {"generator": YSB, "start": "soon"}])
def test_options_given_to_spark_directly_are_checked_too(texts: dict[str, str]):
    with pytest.raises(UsageError):
        FeedOptions.from_texts(texts)


@pytest.mark.spark
def test_backlog_shows_in_progress_and_the_knob_acts(spark: SparkSession, tmp_path: Path):
    start = time.time() // 1 - 30
    knob = tmp_path / "knob.json"
    knob.write_text('{"rows": 400}')
    rows = feed(
        spark, YSB, rate="500", start=start, stop=start + 10, partitions=2, knob=knob, arrival=True
    )
    assert set(rows.columns) == {*COLUMNS, "event_time", "arrival_time"}
    query = rows.writeStream.format("memory").queryName("feed_rows").start()
    try:
        deadline = time.monotonic() + 60
        while not query.recentProgress and time.monotonic() < deadline:
            time.sleep(0.02)
        first = query.recentProgress[0]
        knob.write_text("broken")
        query.processAllAvailable()
        last = query.recentProgress[-1]
    finally:
        query.stop()
    end, latest = (json.loads(first["sources"][0][name]) for name in ("endOffset", "latestOffset"))
    assert 390 <= first["numInputRows"] == end["n"] <= 400
    assert latest["n"] == 5000
    assert json.loads(last["sources"][0]["endOffset"])["n"] == 5000
    table = spark.table("feed_rows")
    assert table.count() == 5000
    assert table.where("arrival_time < event_time").count() == 0
