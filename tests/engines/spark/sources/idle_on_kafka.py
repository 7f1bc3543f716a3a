"""Fleets on Spark's own Kafka source, in a process with the connector's jars.

Queries that are idle, one that rests for long while rows come, and one whose batches are limited.

``python -m tests.engines.spark.sources.idle_on_kafka ADDRESS`` prints what was seen as JSON.
"""

import json
import sys
import time
from typing import Any

from confluent_kafka import Producer
from pyspark.sql import DataFrame, SparkSession

from slackwater.engines.spark.session.session import session
from slackwater.spark import Fleet
from slackwater_bench.kafka_broker import connector_jars
from tests.engines.spark.gates import pieces
from tests.engines.spark.gates.test_read_limits import Batches
from tests.engines.spark.test_idle import LIMIT_S, admissions, rows, still
from tests.waiting import eventually

TOPICS = ("one", "two")
RESTING, LIMITED = "resting", "limited"
READ, LEFT = 3, 10  # rows of the query that rests
WAITING, MOST = 200, 20  # rows of the one that is limited, and of each of its batches


class Topics:
    """Writes to topics and reads them."""

    def __init__(self, spark: SparkSession, address: str) -> None:
        self._spark, self._address = spark, address
        self._producer = Producer({"bootstrap.servers": address})

    def send(self, topic: str, rows: int = 1) -> None:
        for _ in range(rows):
            self._producer.produce(topic, b"row")
        self._producer.flush(30)

    def load(self, topic: str, **options: str) -> DataFrame:
        source = self._spark.readStream.format("kafka").options(**options)
        source = source.option("kafka.bootstrap.servers", self._address)
        return source.option("subscribe", topic).option("kafka.group.id", topic).load()


def idle(spark: SparkSession, topics: Topics) -> dict[str, Any]:
    """Wait until brokers are asked instead of triggers, and for what comes then."""
    with Fleet(spark, "klink") as fleet:
        for topic in TOPICS:
            fleet.start(topics.load(topic).writeStream.format("noop"), name=topic)
        topics.send(RESTING, READ)
        rests = topics.load(RESTING, startingOffsets="earliest").writeStream.format("noop")
        query = fleet.start(rests.trigger(processingTime="1 hour"), name=RESTING)
        # Offsets begin at the end: a row counts once the query has taken its first look.
        eventually(lambda: all(admissions(fleet, topic) for topic in TOPICS), LIMIT_S)
        eventually(lambda: lag_rows(fleet, RESTING) == 0, LIMIT_S)
        topics.send(RESTING, LEFT)
        eventually(lambda: lag_rows(fleet, RESTING) == LEFT, LIMIT_S)
        for topic in TOPICS:
            still(fleet, topic)
        began_s = time.monotonic()
        topics.send("one")
        eventually(lambda: rows(fleet, "one") == 1, LIMIT_S)
        return {
            "after_s": time.monotonic() - began_s,
            "clusters": len(fleet._agent._inputs._finder._clusters),
            "triggers_at_rest": len(query.recentProgress),
        }


def lag_rows(fleet: Fleet, name: str) -> float | None:
    return next(query.lag_rows for query in fleet.status().queries if query.name == name)


def limited(spark: SparkSession, topics: Topics) -> list[int]:
    """Return the rows of each batch of a query that is told how many it may read."""
    topics.send(LIMITED, WAITING)
    given = {"rows": MOST, "first": (0,)}
    with Fleet(spark, pieces.NAME, controller="thread", parameters=given) as fleet:
        batches = Batches(fleet)
        source = topics.load(LIMITED, startingOffsets="earliest")
        fleet.start(source.writeStream.format("noop"), name=LIMITED)
        eventually(lambda: batches.read(LIMITED) >= WAITING, LIMIT_S)
        return batches.rows[LIMITED]


def main(address: str) -> None:
    spark = session("idle", "local[2]", conf={"spark.jars": ",".join(connector_jars())})
    spark.sparkContext.setLogLevel("OFF")
    topics = Topics(spark, address)
    found = idle(spark, topics) | {"limited": limited(spark, topics)}
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
