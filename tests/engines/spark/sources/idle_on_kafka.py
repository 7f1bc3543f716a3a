"""A fleet of idle queries on Spark's own Kafka source, in a process with the connector's jars.

``python -m tests.engines.spark.sources.idle_on_kafka ADDRESS`` prints what was seen as JSON.
"""

import json
import sys
import time

from confluent_kafka import Producer

from slackwater.engines.spark.session.session import session
from slackwater.spark import Fleet
from slackwater_bench.kafka_broker import connector_jars
from tests.engines.spark.test_idle import LIMIT_S, admissions, rows, still
from tests.waiting import eventually

TOPICS = ("one", "two")


def main(address: str) -> None:
    spark = session("idle", "local[2]", conf={"spark.jars": ",".join(connector_jars())})
    spark.sparkContext.setLogLevel("OFF")
    producer = Producer({"bootstrap.servers": address})

    def send(topic: str) -> None:
        producer.produce(topic, b"row")
        producer.flush(30)

    with Fleet(spark, "klink") as fleet:
        for topic in TOPICS:
            source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", address)
            topic_rows = source.option("subscribe", topic).option("kafka.group.id", topic).load()
            fleet.start(topic_rows.writeStream.format("noop"), name=topic)
        # Offsets begin at the end: a row counts once the query has taken its first look.
        eventually(lambda: all(admissions(fleet, topic) for topic in TOPICS), LIMIT_S)
        for topic in TOPICS:
            still(fleet, topic)
        began_s = time.monotonic()
        send("one")
        eventually(lambda: rows(fleet, "one") == 1, LIMIT_S)
        found = {
            "after_s": time.monotonic() - began_s,
            "clusters": len(fleet._agent._inputs._finder._clusters),
        }
    print(json.dumps(found), flush=True)
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
