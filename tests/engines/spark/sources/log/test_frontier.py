"""How far a log has come: what is told, when it is not, and results that follow from it."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.sources import remote_frontier
from slackwater.engines.spark.sources.kafka import KafkaOptions, KafkaReader
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.log.segment_log import SegmentOptions, append
from slackwater.engines.spark.sources.query_log import SegmentReader, read_log
from slackwater.engines.spark.sources.redis import RedisOptions, RedisReader
from slackwater.engines.spark.sources.remote_frontier import FrontierLost, RemoteFrontier
from slackwater.spark import kafka_topic, redis_stream
from tests.engines.spark.gates.scripted_fleet import Script
from tests.engines.spark.gates.test_exactness import check, raised, random_stream, run
from tests.kafka_mock import KafkaMock
from tests.redis_server import RedisServer
from tests.waiting import eventually

SCHEMA = StructType([StructField("id", LongType()), StructField("at", TimestampType())])
S = 1_000_000  # microseconds
Add = Callable[[list[int | None]], None]  # rows with these times in ms


def arrow_rows(times_ms: list[int | None]) -> pa.Table:
    us = [None if ms is None else 1000 * ms for ms in times_ms]
    at = pa.array(us, pa.timestamp("us", "UTC"))
    return pa.table({"id": pa.array(range(len(us)), pa.int64()), "at": at})


def to_redis(server: RedisServer) -> Add:
    def add(times_ms: list[int | None]) -> None:
        rows = [{"id": 1} if ms is None else {"id": 1, "at": ms} for ms in times_ms]
        server.add("s", rows)  # type: ignore[arg-type]

    return add


def to_kafka(mock: KafkaMock) -> Add:
    def add(times_ms: list[int | None]) -> None:
        texts = [b'{"at": %s}' % (b"null" if ms is None else b"%d" % ms) for ms in times_ms]
        mock.send("t", texts, partition=1)

    return add


def to_log(folder: Path) -> Add:
    folder.mkdir(parents=True)
    (folder / "schema.json").write_text(SCHEMA.json())
    numbers = iter(range(1000))

    def add(times_ms: list[int | None]) -> None:
        append(folder, next(numbers), arrow_rows(times_ms))

    return add


@pytest.fixture(params=["redis", "kafka", "log"])
def log_and_add(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[LogReader, Add]:
    """A reader of each log, and what adds rows to it."""
    reader: LogReader
    if request.param == "log":
        add = to_log(tmp_path / "log")
        reader = SegmentReader(SegmentOptions(folders=(str(tmp_path / "log"),)), SCHEMA)
    elif request.param == "redis":
        server = request.getfixturevalue("redis_server")
        add = to_redis(server)
        redis = RedisOptions(url=server.url, streams=("s", "none"), timestamps="ms")
        reader = RedisReader(redis, SCHEMA)
    else:
        mock = request.getfixturevalue("kafka_mock")
        add = to_kafka(mock)
        kafka = KafkaOptions(servers=mock.address, topics=("t",), value="json", timestamps="ms")
        reader = KafkaReader(kafka, SCHEMA)
    return reader, add


@pytest.mark.server
def test_only_what_the_next_batch_reads_counts(log_and_add: tuple[LogReader, Add]) -> None:
    reader, add = log_and_add
    add([9_000_000, 1000])
    read = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    assert reader.newest_us("at", read) is None, "nothing is new"
    add([2000, 5000, None])
    assert reader.newest_us("at", read) == 5 * S
    add([3000])
    assert reader.newest_us("at", read) in (3 * S, 5 * S)  # of some logs the last rows only
    read = reader.latestOffset(read, ReadAllAvailable())
    assert reader.newest_us("at", read) is None
    add([None])
    assert reader.newest_us("at", read) is None, "a row without an event time tells nothing"


@pytest.mark.server
def test_streams_that_the_query_does_not_know_yet_do_not_count(
    log_and_add: tuple[LogReader, Add],
) -> None:
    """Its next batch need not read them: partitions are looked for now and then only."""
    reader, add = log_and_add
    add([1000])
    read = reader.initialOffset()
    assert reader.newest_us("at", read) == 1 * S
    assert reader.newest_us("at", read | {"at": {}}) is None


def test_an_instance_counts_only_its_own_rows(tmp_path: Path) -> None:
    add = to_log(tmp_path / "log")
    options = [SegmentOptions(folders=(str(tmp_path / "log"),), instance=i) for i in ("0/2", "1/2")]
    readers = [SegmentReader(each, SCHEMA) for each in options]
    begun = [reader.initialOffset() for reader in readers]
    add([1000, 2000, 7000])
    add([5000, 6000])
    found = [r.newest_us("at", b) for r, b in zip(readers, begun, strict=True)]
    assert found == [6 * S, 5 * S]


# -- asking ---------------------------------------------------------------------------------------


def test_a_server_that_does_not_answer_is_not_waited_for_and_not_asked_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_frontier, "ANSWER_S", 0.01)
    answer, asked = threading.Event(), []

    def slow() -> int:
        asked.append(1)
        answer.wait(60)
        return 5

    frontier = RemoteFrontier(slow)
    assert [frontier.newest_us() for _ in range(3)] == [None] * 3
    assert len(asked) == 1
    answer.set()
    eventually(lambda: frontier.newest_us() == 5)


def test_a_server_that_fails_leaves_it_unknown_until_it_answers() -> None:
    answers: list[Any] = [7, OSError("away"), TimeoutError(), 3]

    def ask() -> int:
        answer = answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return int(answer)

    frontier = RemoteFrontier(ask)
    assert [frontier.newest_us() for _ in range(4)] == [7, None, None, 7]


def test_what_is_lost_is_not_asked_for_again() -> None:
    answers: list[Exception] = [FrontierLost("gone")]

    def ask() -> int:
        raise answers.pop()

    frontier = RemoteFrontier(ask)
    for _ in range(2):
        with pytest.raises(FrontierLost, match="gone"):
            frontier.newest_us()


# -- queries --------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize("source", ["redis", "kafka", "log"])
def test_one_batch_closes_a_window(
    source: str,
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The batch that emits is the one that read past the window's end.

    On a busy machine a source may answer too late, now and then.
    """
    monkeypatch.setattr(remote_frontier, "ANSWER_S", 1.0)
    rows: DataFrame
    if source == "redis":
        server = request.getfixturevalue("redis_server")
        add = to_redis(server)
        rows = redis_stream(spark, server.url, "s", schema=SCHEMA, timestamps="ms")
    elif source == "kafka":
        mock = request.getfixturevalue("kafka_mock")
        add = to_kafka(mock)
        mock.send("t", [b"{}"])  # makes the topic
        rows = kafka_topic(spark, mock.address, "t", schema=SCHEMA, timestamps="ms")
    else:
        add = to_log(tmp_path / "log")
        rows = read_log(spark, tmp_path / "log")
    fleet = make_fleet("klink")
    counted = rows.withWatermark("at", "1 second").groupBy(F.window("at", "1 second")).count()
    name = f"one_{source}"
    query = fleet.start(counted.writeStream.format("memory"), name=name)
    assert fleet.status().queries[0].why_two_batches is None
    first_ms = 1_000_000 * int(time.time() / 1000)
    read_too = 0
    for second in range(24):
        add([first_ms + 1000 * second + ms for ms in (0, 400, 800)])
        if second >= 2:
            wanted = second - 1
            eventually(lambda wanted=wanted: spark.table(name).count() >= wanted, 60)  # type: ignore[misc]
            emitting = [p for p in query.recentProgress if p.sink.numOutputRows > 0]
            read_too = sum(p.numInputRows > 0 for p in emitting)
            if second >= 5 and read_too >= 3:
                break
    fleet.stop_query(name)
    counts = [row["count"] for row in spark.table(name).orderBy("window").collect()]
    assert counts[-4:] == [3] * 4
    assert read_too >= 3, "a batch of its own had to emit"


@pytest.mark.spark
def test_nothing_is_lost_or_doubled_when_the_source_tells(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    sources = (redis_server.url, "log", redis_server.url, "log")
    streams = [random_stream(f"q{n}", 500 + n, source) for n, source in enumerate(sources)]
    run(tmp_path, Script(streams, 1, die_at="write", die_after=10))
    assert run(tmp_path, Script(streams, 2)) == 0, (tmp_path / "log").read_text()[-3000:]
    check(tmp_path, streams)
    assert raised(tmp_path)
