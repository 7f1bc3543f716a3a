"""The source over Kafka topics, against the client library's mock cluster: not against Kafka."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.sources.kafka import KafkaOptions, KafkaReader, KafkaSource
from slackwater.engines.spark.sources.log import kafka_log
from slackwater.engines.spark.sources.log.log import DataGone
from slackwater.spark import kafka_topic
from tests.engines.spark.sources.log.running import sizes, writer, written
from tests.kafka_mock import KafkaMock
from tests.waiting import eventually

SCHEMA = StructType([StructField("number", LongType())])
ALL = ReadAllAvailable()


def reader_of(mock: KafkaMock, *topics: str, **options: Any) -> KafkaReader:
    wanted = KafkaOptions(
        **({"servers": mock.address, "topics": topics or ("t",), "value": "json"} | options)
    )
    return KafkaReader(KafkaOptions.from_texts(wanted.texts()), SCHEMA)


def numbered(first: int, count: int) -> list[bytes]:
    return [b'{"number": %d}' % number for number in range(first, first + count)]


def read(reader: KafkaReader, start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    batches = [b for part in reader.partitions(start, end) for b in reader.read(part)]
    if not batches:
        return []
    return sorted(pa.Table.from_batches(batches).column("number").to_pylist())


# -- the reader without Spark ---------------------------------------------------------------------


def test_rows_and_offsets(kafka_mock: KafkaMock) -> None:
    kafka_mock.send("t", numbered(0, 1_000))
    kafka_mock.send("u", numbered(1_000, 1), partition=2)
    reader = reader_of(kafka_mock, "t", "u")
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    assert end["n"] == 1_001
    assert end["at"] | {"t-0": 250, "u-2": 1} == end["at"]
    assert read(reader, start, end) == list(range(1_001))
    assert read(reader, start, end) == list(range(1_001)), "a replay differs"
    assert reader.latestOffset(end, ALL) is end


@pytest.mark.parametrize("limit", [1, 7, 900, 10**6])
def test_a_limit_leaves_a_backlog_that_the_offsets_show(kafka_mock: KafkaMock, limit: int) -> None:
    kafka_mock.send("t", numbered(0, 1_000))
    reader = reader_of(kafka_mock)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadMaxRows(limit))
    taken = read(reader, start, end)
    assert len(taken) == end["n"] == min(limit, 1_000)
    latest = reader.reportLatestOffset()
    assert latest is not None
    assert latest["n"] - end["n"] == 1_000 - len(taken)
    rest = read(reader, end, reader.latestOffset(end, ALL))
    assert sorted(taken + rest) == list(range(1_000))


def test_latest_begins_after_what_is_there(kafka_mock: KafkaMock) -> None:
    kafka_mock.send("t", numbered(0, 10))
    reader = reader_of(kafka_mock, start="latest")
    start = reader.initialOffset()
    assert reader.latestOffset(start, ALL) is start
    kafka_mock.send("t", numbered(10, 5))
    assert read(reader, start, reader.latestOffset(start, ALL)) == list(range(10, 15))


def test_a_position_past_the_end_is_told(kafka_mock: KafkaMock) -> None:
    """As after a topic was deleted and made anew."""
    kafka_mock.send("t", numbered(0, 10))
    reader = reader_of(kafka_mock)
    end = reader.latestOffset(reader.initialOffset(), ALL)
    ahead = end | {"at": end["at"] | {"t-0": 99}}
    with pytest.raises(DataGone, match="rows of t-0 were removed"):
        reader.latestOffset(ahead, ALL)


def test_a_topic_that_does_not_exist_is_told(kafka_mock: KafkaMock) -> None:
    kafka_mock.send("t", numbered(0, 1))
    with pytest.raises(UsageError, match=r"Kafka at .* has no topic tt"):
        reader_of(kafka_mock, "tt").initialOffset()


def test_a_server_that_is_not_there_is_told_in_one_line(
    kafka_mock: KafkaMock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kafka_log, "_ANSWER_S", 0.2)  # nobody is there: no wait is long enough
    reader = reader_of(kafka_mock, servers="127.0.0.1:1", retry_s=0.1)
    with pytest.raises(SlackwaterError, match=r"Kafka at 127.0.0.1:1 did not answer") as told:
        reader.initialOffset()
    assert "\n" not in str(told.value)


def test_a_broken_value_is_told_or_null(kafka_mock: KafkaMock) -> None:
    kafka_mock.send("t", [b'{"number": 1}', b"nonsense", None], partition=0)
    reader = reader_of(kafka_mock)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ALL)
    with pytest.raises(SlackwaterError, match="t-0: b'nonsense' does not fit the schema"):
        read(reader, start, end)
    tolerant = reader_of(kafka_mock, malformed="null")
    (batch,) = [b for part in tolerant.partitions(start, end) for b in tolerant.read(part)]
    assert batch.column("number").to_pylist() == [1, None, None]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"servers": ""}, "name at least one server"),
        ({"topics": []}, "name at least one topic"),
        ({"topics": ["a", "a"]}, "named twice"),
        ({"value": "xml"}, "value is 'xml'"),
        ({"value": "json"}, "JSON values need a schema"),
        ({"value": "string", "schema": "a int"}, "either a schema or a value"),
        ({"columns": ["headers"]}, "a message has no 'headers'"),
        ({"settings": {"sasl.password": "tide"}}, "sasl.password would show"),
        ({"settings": {"group.id": "mine"}}, "the source's own"),
        ({"settings": {"fetch.wait.max.ms": 5}}, "an object of texts"),
        ({"start": "soon"}, "start is 'soon'"),
        ({"rows_per_batch": 0}, "rows_per_batch"),
    ],
)
def test_wrong_options_are_refused_before_spark_is_asked(
    wrong: dict[str, Any], message: str
) -> None:
    given: dict[str, Any] = {"servers": "localhost:1", "topics": "t"}
    with pytest.raises(UsageError, match=message) as told:
        kafka_topic(None, **(given | wrong))  # type: ignore[arg-type]
    assert "\n" not in str(told.value)


# -- on Spark -------------------------------------------------------------------------------------


@pytest.mark.spark
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"schema": "a array<timestamp>"}, "JSON cannot give the column a"),
        ({"schema": "offset long", "columns": ["offset"]}, "there twice"),
        ({"columns": ["offset"], "event_time": "offset"}, "an event time is a timestamp"),
    ],
)
def test_wrong_columns_are_refused(
    spark: SparkSession, wrong: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        kafka_topic(spark, "localhost:1", "t", **wrong)


@pytest.mark.spark
def test_messages_have_the_columns_of_spark_s_own_source(
    spark: SparkSession, kafka_mock: KafkaMock
) -> None:
    kafka_mock.send("t", [b"tide", None], partition=1, key=b"k")
    columns = ["key", "topic", "partition", "offset", "timestamp"]
    rows = kafka_topic(spark, kafka_mock.address, "t", value="string", columns=columns)
    kinds = ["string", "binary", "string", "int", "bigint", "timestamp"]
    assert [kind for _, kind in rows.dtypes] == kinds
    query = rows.writeStream.format("memory").queryName("messages").start()
    query.processAllAvailable()
    query.stop()
    found = spark.table("messages").orderBy("offset").collect()
    assert [tuple(row)[:5] for row in found] == [
        ("tide", bytearray(b"k"), "t", 1, 0),
        (None, bytearray(b"k"), "t", 1, 1),
    ]
    assert all(row.timestamp.year >= 2024 for row in found)


@pytest.mark.spark
def test_the_source_can_be_named_without_our_function(
    spark: SparkSession, kafka_mock: KafkaMock
) -> None:
    kafka_mock.send("t", [b"tide"], partition=0)
    spark.dataSource.register(KafkaSource)
    reader = spark.readStream.format("slackwater-kafka")
    rows = reader.options(servers=kafka_mock.address, topics="t", columns="offset").load()
    query = rows.writeStream.format("memory").queryName("named_kafka").start()
    query.processAllAvailable()
    query.stop()
    assert [tuple(row) for row in spark.table("named_kafka").collect()] == [(bytearray(b"tide"), 0)]


@pytest.mark.spark
def test_a_checkpoint_is_gone_on_from(
    spark: SparkSession, kafka_mock: KafkaMock, out: Path
) -> None:
    kafka_mock.send("t", numbered(0, 1))
    rows = kafka_topic(spark, kafka_mock.address, "t", schema="number long", rows_per_batch=150)
    for first in (1, 501, 1001):
        kafka_mock.send("t", numbered(first, 500))
        query = writer(rows, out).trigger(availableNow=True).start()
        assert query.awaitTermination(60)
        assert written(spark, out) == Counter(range(first + 500))


@pytest.mark.spark
@pytest.mark.parametrize("gate", ["clock", "source"])
def test_gates_limit_its_rows(
    spark: SparkSession, make_fleet: Callable[..., Fleet], kafka_mock: KafkaMock, gate: str
) -> None:
    kafka_mock.send("t", numbered(0, 3_000))
    fleet = make_fleet("tests.engines.spark.test_fleet:Sips", gate=gate)
    name = f"kafka_{gate}"
    rows = kafka_topic(spark, kafka_mock.address, "t", schema="number long")
    if gate == "source":
        rows = fleet.gate(rows, name)
    query = fleet.start(rows.writeStream.format("memory"), name=name)
    eventually(lambda: sum(sizes(query)) == 3_000, limit_s=90)
    assert max(sizes(query)) <= 250
    assert Counter(row[0] for row in spark.table(name).collect()) == Counter(range(3_000))
