"""The source over Redis Streams, against a real redis-server."""

import json
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.sources.log.log import DataGone
from slackwater.engines.spark.sources.redis import RedisOptions, RedisReader, RedisSource
from slackwater.spark import redis_stream
from tests.engines.spark.sources.log.running import commits, sizes, writer, written
from tests.redis_server import RedisProducer, RedisServer
from tests.waiting import eventually

SCHEMA = StructType(
    [StructField("number", LongType()), StructField("arrival_time", TimestampType())]
)
ALL = ReadAllAvailable()


def reader_of(server: RedisServer, *streams: str, **options: Any) -> RedisReader:
    wanted = RedisOptions(url=server.url, streams=streams or ("s",), arrival=True, **options)
    return RedisReader(RedisOptions.from_texts(wanted.texts()), SCHEMA)


def numbered(first: int, count: int) -> list[dict[str, object]]:
    return [{"number": number} for number in range(first, first + count)]


def read(reader: RedisReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    batches = [b for part in reader.partitions(start, end) for b in reader.read(part)]
    return pa.Table.from_batches(batches).to_pylist() if batches else []


def numbers(rows: list[dict[str, Any]]) -> list[int]:
    return sorted(row["number"] for row in rows)


# -- the reader without Spark ---------------------------------------------------------------------


def test_rows_and_offsets(redis_server: RedisServer) -> None:
    redis_server.add("s", numbered(0, 12_000))
    redis_server.add("t", numbered(12_000, 500), first_ms=5_000)
    reader = reader_of(redis_server, "s", "t", "none")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert end["n"] == 12_500
    rows = read(reader, start, end)
    assert numbers(rows) == list(range(12_500))
    assert rows[-1]["arrival_time"].timestamp() == 5.499
    assert reader.latestOffset(end, ALL) is end
    redis_server.add("none", numbered(7, 1))
    assert numbers(read(reader, end, reader.latestOffset(end, ALL))) == [7]


@pytest.mark.parametrize("limit", [1, 7, 6000, 10**6])
def test_a_limit_ends_at_the_right_entry(redis_server: RedisServer, limit: int) -> None:
    redis_server.add("s", numbered(0, 9_000))
    redis_server.add("t", numbered(9_000, 3_000))
    reader = reader_of(redis_server, "s", "t")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(limit))
    rows = read(reader, start, end)
    assert len(rows) == end["n"] == min(limit, 12_000)
    latest = reader.reportLatestOffset()
    assert latest is not None
    assert latest["n"] - end["n"] == 12_000 - len(rows)
    rest = read(reader, end, reader.latestOffset(end, ALL))
    assert numbers(rows + rest) == list(range(12_000))


def test_what_was_read_may_be_trimmed(redis_server: RedisServer) -> None:
    redis_server.add("s", numbered(0, 20), first_ms=1)
    reader = reader_of(redis_server)
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(8))
    redis_server.client.xtrim("s", maxlen=12, approximate=False)
    end = reader.latestOffset(start, ALL)
    assert numbers(read(reader, start, end)) == list(range(8, 20))
    redis_server.client.xtrim("s", maxlen=0, approximate=False)
    assert reader.latestOffset(end, ALL) is end
    redis_server.add("s", numbered(20, 3), first_ms=100)
    assert numbers(read(reader, end, reader.latestOffset(end, ALL))) == [20, 21, 22]


@pytest.mark.parametrize("kept", [0, 5])
def test_entries_trimmed_before_they_were_read_are_told(
    redis_server: RedisServer, kept: int
) -> None:
    redis_server.add("s", numbered(0, 20), first_ms=1)
    reader = reader_of(redis_server)
    start = reader.latestOffset(reader.initialOffset(), ReadMaxRows(8))
    planned = reader.latestOffset(start, ALL)
    redis_server.client.xtrim("s", maxlen=kept, approximate=False)
    with pytest.raises(DataGone, match=f"{12 - kept} rows of s were removed") as told:
        reader.latestOffset(start, ALL)
    assert "fail_on_data_loss=False" in str(told.value)
    with pytest.raises(DataGone):
        read(reader, start, planned)  # trimmed between planning and reading
    tolerant = reader_of(redis_server, fail_on_data_loss=False)
    assert numbers(read(tolerant, start, planned)) == list(range(20 - kept, 20))
    redis_server.add("s", numbered(20, 1), first_ms=100)
    end = tolerant.latestOffset(start, ALL)
    assert numbers(read(tolerant, start, end)) == list(range(20 - kept, 21))


def test_entries_deleted_before_the_query_began_are_no_loss(redis_server: RedisServer) -> None:
    redis_server.add("s", numbered(0, 20), first_ms=1)
    redis_server.client.xdel("s", "5-0", "9-0")
    redis_server.client.xtrim("s", maxlen=15, approximate=False)
    reader = reader_of(redis_server)
    start = reader.initialOffset()
    first = reader.latestOffset(start, ReadMaxRows(4))
    end = reader.latestOffset(first, ALL)
    found = numbers(read(reader, start, first) + read(reader, first, end))
    assert found == [3, 5, 6, 7, *range(9, 20)]


def test_an_entry_deleted_before_it_was_read_is_told(redis_server: RedisServer) -> None:
    redis_server.add("s", numbered(0, 20), first_ms=1)
    reader = reader_of(redis_server)
    start = reader.initialOffset()
    redis_server.client.xdel("s", "12-0")
    with pytest.raises(DataGone, match="1 rows of s"):
        read(reader, start, reader.latestOffset(start, ALL))


def test_a_stream_that_was_made_anew_is_told(redis_server: RedisServer) -> None:
    redis_server.add("s", numbered(0, 20))
    reader = reader_of(redis_server)
    start = reader.latestOffset(reader.initialOffset(), ALL)
    redis_server.client.delete("s")
    with pytest.raises(DataGone):
        reader.latestOffset(start, ALL)
    redis_server.add("s", numbered(20, 3))
    with pytest.raises(DataGone):
        reader.latestOffset(start, ALL)
    tolerant = reader_of(redis_server, fail_on_data_loss=False)
    assert numbers(read(tolerant, start, tolerant.latestOffset(start, ALL))) == [20, 21, 22]


def test_fields_may_differ_between_entries(redis_server: RedisServer) -> None:
    redis_server.add("s", [{"number": 1}, {"other": "x"}, {"other": "y", "number": 3}])
    reader = reader_of(redis_server)
    start = reader.initialOffset()
    rows = read(reader, start, reader.latestOffset(start, ALL))
    assert [row["number"] for row in rows] == [1, None, 3]


def test_a_value_that_does_not_fit_is_told_or_null(redis_server: RedisServer) -> None:
    redis_server.add("s", [{"number": 1}, {"number": "one"}])
    reader = reader_of(redis_server)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    with pytest.raises(SlackwaterError, match="s, field number: b'one' is no int64"):
        read(reader, start, end)
    rows = read(reader_of(redis_server, malformed="null"), start, end)
    assert [row["number"] for row in rows] == [1, None]


def test_reading_outlasts_a_killed_server(redis_server: RedisServer) -> None:
    redis_server.add("s", numbered(0, 12_000))
    reader = reader_of(redis_server, retry_s=30)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    (part,) = reader.partitions(start, end)
    batches = reader.read(part)
    found = [next(batches)]
    redis_server.kill()
    assert reader.latestOffset(end, ALL) is end
    threading.Timer(1.0, redis_server.start).start()
    found += batches
    assert pa.Table.from_batches(found).column("number").to_pylist() == list(range(12_000))


def test_a_server_that_stays_away_is_told_in_one_line(redis_server: RedisServer) -> None:
    redis_server.kill()
    with pytest.raises(SlackwaterError, match=r"Redis at /.* did not answer for 0.3 s") as told:
        reader_of(redis_server, retry_s=0.3).initialOffset()
    assert "\n" not in str(told.value)


def test_a_key_that_is_no_stream_is_told(redis_server: RedisServer) -> None:
    redis_server.client.set("s", "text")
    with pytest.raises(UsageError, match="the key s in Redis is no stream"):
        reader_of(redis_server).initialOffset()


def test_a_password_comes_from_the_environment(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    redis_server.client.config_set("requirepass", "tide")
    with pytest.raises(UsageError, match="Redis refuses the login"):
        reader_of(redis_server).initialOffset()
    monkeypatch.setenv("TIDE", "tide")
    assert reader_of(redis_server, password="env:TIDE").initialOffset()["n"] == 0
    with pytest.raises(UsageError, match="variable EBB is not set"):
        reader_of(redis_server, password="env:EBB").initialOffset()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"url": "localhost"}, "is no address of Redis"),
        ({"url": "redis://x:port"}, "is no address of Redis"),
        ({"url": "redis://:secret@x"}, "a password in the url"),
        ({"password": "secret"}, "password would show"),
        ({"streams": []}, "name at least one stream"),
        ({"streams": ["a", "a"]}, "named twice"),
        ({"streams": "a,b"}, "without commas"),
        ({"start": "soon"}, "start is 'soon'"),
        ({"rows_per_batch": 0}, "rows_per_batch"),
        ({"sampled": True}, "must know the event time"),
    ],
)
def test_wrong_options_are_refused_before_spark_is_asked(
    wrong: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"url": "redis://localhost", "streams": "s", "schema": "number long"}
    with pytest.raises(UsageError, match=message) as told:
        redis_stream(None, **(given | wrong))  # type: ignore[arg-type]
    assert "\n" not in str(told.value)


# -- on Spark -------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"schema": "number lung"}, "cannot be parsed"),
        ({"schema": "long"}, "names no columns"),
        ({"schema": "number long, number int"}, "there twice|cannot be parsed"),
        ({"schema": "arrival_time long", "arrival": True}, "there twice"),
        ({"schema": "number map<int, int>"}, "cannot give the column number as map"),
        ({"event_time": "number"}, "an event time is a timestamp"),
        ({"event_time": "then"}, "event_time names 'then'"),
    ],
)
def test_wrong_columns_are_refused(
    spark: SparkSession, wrong: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"url": "redis://localhost", "streams": "s", "schema": "number long"}
    with pytest.raises(UsageError, match=message) as told:
        redis_stream(spark, **(given | wrong))
    assert "\n" not in str(told.value)


@pytest.mark.spark
def test_the_source_can_be_named_without_our_function(
    spark: SparkSession, redis_server: RedisServer
) -> None:
    redis_server.add("s", [{"word": "tide", "at": "1714564800500"}])
    spark.dataSource.register(RedisSource)
    rows = (
        spark.readStream.format("slackwater-redis")
        .schema("word string, at timestamp")
        .options(url=redis_server.url, streams="s", timestamps="ms")
        .load()
    )
    query = rows.writeStream.format("memory").queryName("named").start()
    query.processAllAvailable()
    query.stop()
    assert [
        tuple(row) for row in spark.sql("select word, unix_millis(at) from named").collect()
    ] == [("tide", 1714564800500)]


@pytest.mark.spark
def test_killing_redis_loses_and_doubles_nothing(
    spark: SparkSession, redis_server: RedisServer, out: Path
) -> None:
    producer = RedisProducer(redis_server, ["a", "b", "c"], rows=6_000)
    rows = redis_stream(
        spark, redis_server.url, ["a", "b", "c"], schema="number long", rows_per_batch=400
    )
    query = writer(rows, out).start()
    producer.start()
    try:
        for share in (0.2, 0.6):
            eventually(lambda share=share: producer.sent > share * producer.rows)  # type: ignore[misc]
            before = commits(out)
            redis_server.kill()
            time.sleep(1.0)  # an outage, not a wait for something
            redis_server.start()
            eventually(lambda before=before: commits(out) > before, limit_s=60)  # type: ignore[misc]
        eventually(
            lambda: not query.isActive or written(spark, out).total() >= producer.rows,
            limit_s=120,
            pause_s=0.5,
        )
        assert query.exception() is None
        assert query.isActive
    finally:
        query.stop()
    assert written(spark, out) == Counter(range(producer.rows))


@pytest.mark.spark
def test_a_server_that_stays_away_fails_the_query_clearly(
    spark: SparkSession, redis_server: RedisServer, out: Path
) -> None:
    redis_server.add("s", numbered(0, 10))
    rows = redis_stream(spark, redis_server.url, "s", schema="number long", retry_s=1)
    query = writer(rows, out).start()
    try:
        query.processAllAvailable()
        redis_server.kill()
        eventually(lambda: not query.isActive, limit_s=60)
    finally:
        query.stop()
    assert "did not answer for 1 s" in str(query.exception())


@pytest.mark.spark
def test_a_checkpoint_is_gone_on_from(
    spark: SparkSession, redis_server: RedisServer, out: Path
) -> None:
    rows = redis_stream(spark, redis_server.url, ["s", "t"], schema="number long")
    for first in (0, 500, 1000):
        redis_server.add("s", numbered(first, 400))
        redis_server.add("t", numbered(first + 400, 100))
        query = writer(rows, out).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert written(spark, out) == Counter(range(first + 500))


@pytest.mark.spark
@pytest.mark.parametrize("gate", ["clock", "source"])
def test_gates_limit_its_rows(
    spark: SparkSession, make_fleet: Callable[..., Fleet], redis_server: RedisServer, gate: str
) -> None:
    redis_server.add("s", numbered(0, 2_000))
    redis_server.add("t", numbered(2_000, 1_000))
    fleet = make_fleet("tests.engines.spark.test_fleet:Sips", gate=gate)
    name = f"redis_{gate}"
    rows = redis_stream(spark, redis_server.url, ["s", "t"], schema="number long")
    if gate == "source":
        rows = fleet.gate(rows, name)
    query = fleet.start(rows.writeStream.format("memory"), name=name)
    eventually(lambda: sum(sizes(query)) == 3_000, limit_s=90)
    assert max(sizes(query)) <= 250
    latest = json.loads(query.recentProgress[0].sources[-1].latestOffset)
    assert latest["n"] == 3_000
    assert Counter(row[0] for row in spark.table(name).collect()) == Counter(range(3_000))
