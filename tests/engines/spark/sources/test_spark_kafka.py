"""Kafka for real: Spark's own connector, and our source, against a broker."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from pyspark.sql.types import StructField, StructType, TimestampType

from slackwater.engines.spark.sources.kafka import KafkaOptions, KafkaReader
from slackwater_bench.kafka_broker import KafkaBroker
from tests.engines.spark.gates.scripted_fleet import Script
from tests.engines.spark.gates.test_exactness import _path, check, raised, random_stream, run
from tests.engines.spark.sources import idle_on_kafka
from tests.engines.spark.sources.idle_on_kafka import LIMITED, MOST, RESTING, WAITING
from tests.root import ROOT
from tests.waiting import eventually

pytestmark = pytest.mark.kafka

LIMITED_PARTITIONS = 3


@pytest.mark.spark
def test_nothing_is_lost_or_doubled_with_sparks_own_source(
    kafka_broker: KafkaBroker, tmp_path: Path
) -> None:
    """Watermarks on the records' timestamps, and on times in their payload."""
    streams = []
    for number, kind in enumerate(("kafka", "payload")):
        kafka_broker.create(f"q{number}")
        source = f"{kind} {kafka_broker.address}"
        streams.append(random_stream(f"q{number}", 900 + number, source))
    run(tmp_path, Script(streams, 1, die_at="write", die_after=5))
    assert run(tmp_path, Script(streams, 2)) == 0, (tmp_path / "log").read_text()[-3000:]
    check(tmp_path, streams)
    assert raised(tmp_path)


@pytest.fixture(scope="module")
def told(kafka_broker: KafkaBroker, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What fleets in a process of their own have seen."""
    for topic, partitions in {"one": 1, "two": 1, RESTING: 2, LIMITED: LIMITED_PARTITIONS}.items():
        kafka_broker.create(topic, partitions)
    runtime = str(tmp_path_factory.mktemp("t"))
    done = subprocess.run(
        [sys.executable, "-m", idle_on_kafka.__name__, kafka_broker.address],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"SLACKWATER_RUNTIME_DIR": runtime, "PYTHONPATH": _path()},
        check=False,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.spark
def test_idle_queries_are_told_by_the_brokers(told: dict[str, Any]) -> None:
    """No trigger runs for a while if nothing comes; what comes is read soon."""
    assert told["after_s"] < 20  # a second on an idle machine; else it is 30 until somebody looks
    assert told["clusters"] == 1, "one client is enough for all"


@pytest.mark.spark
def test_the_lag_in_rows_is_known_without_a_trigger(told: dict[str, Any]) -> None:
    """The program has waited for it; and no trigger has run meanwhile."""
    assert told["triggers_at_rest"] == 1


@pytest.mark.spark
def test_batches_have_no_more_rows_than_they_were_granted(told: dict[str, Any]) -> None:
    assert sum(told["limited"]) == WAITING
    # Spark rounds each partition's share, and reads a row of each at least.
    assert abs(max(told["limited"]) - MOST) < LIMITED_PARTITIONS


def test_only_what_a_transaction_has_brought_to_its_end_counts(kafka_broker: KafkaBroker) -> None:
    kafka_broker.create("committed", partitions=2)
    schema = StructType([StructField("at", TimestampType())])
    options = KafkaOptions(
        servers=kafka_broker.address, topics=("committed",), value="json", timestamps="ms"
    )
    reader = KafkaReader(options, schema)
    producer = kafka_broker.producer(**{"transactional.id": "one"})
    producer.init_transactions(30)

    def send(partition: int, at_ms: int) -> None:
        producer.produce("committed", json.dumps({"at": at_ms}).encode(), partition=partition)

    read = reader.initialOffset()
    producer.begin_transaction()
    send(0, 1000)
    send(1, 2000)
    producer.flush(30)
    assert reader.newest_us("at", read) is None, "it is under way"
    producer.commit_transaction(30)
    eventually(lambda: reader.newest_us("at", read) == 2_000_000)  # its marks come later
    producer.begin_transaction()
    send(0, 9000)
    producer.flush(30)
    producer.abort_transaction(30)
    assert reader.newest_us("at", read) == 2_000_000
    read = reader.latestOffset(read, ReadAllAvailable())
    assert reader.newest_us("at", read) is None
