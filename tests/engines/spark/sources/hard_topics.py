"""A fleet under Klink on topics that are not easy, in a process with the connector's jars.

``python -m tests.engines.spark.sources.hard_topics FOLDER`` starts a broker, kills it in the middle
and starts it again, and prints as JSON what was wrong with each query's results.
"""

import json
import random
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.session.session import session
from slackwater.spark import Fleet, kafka_frontier, kafka_topic
from slackwater_bench.kafka_broker import KafkaBroker, connector_jars
from tests.waiting import eventually

WINDOW_MS, DELAY_MS = 2000, 1000
LIMIT_S = 90.0
ROUNDS, PAUSE_S = 60, 0.15
KILLED, GROWN = ROUNDS // 3, ROUNDS // 2  # in which round
FAR_MS = 3_600_000
KEYS = 20  # of the compacted topic
SETTINGS = {
    "compacted": {
        "cleanup_policy": "compact",
        "segment_ms": "200",
        "min_cleanable_dirty_ratio": "0.01",
        "max_compaction_lag_ms": "500",
    },
    "appended": {"message_timestamp_type": "LogAppendTime"},
}
PARTITIONS = {"plain": 2, "grown": 1, "compacted": 1, "committed": 2, "unordered": 3, "appended": 2}
# Queries by name, each with its topic.
TOPIC_OF = {name: name for name in PARTITIONS} | {
    "committed_payload": "committed",
    "ours_unordered": "unordered",
    "ours_committed": "committed",
}

Rows = dict[int, int]  # event time in ms by number


class Sent:
    """What was sent to each topic, and must or may be counted."""

    def __init__(self) -> None:
        self.must: dict[str, Rows] = defaultdict(dict)
        self.may: dict[str, Rows] = defaultdict(dict)
        self._number = 0

    def row(self, topic: str, at_ms: int, *, may: bool = False) -> tuple[int, bytes]:
        """Return a new row's number and value."""
        self._number += 1
        (self.may if may else self.must)[topic][self._number] = at_ms
        return self._number, json.dumps({"id": self._number, "at": at_ms}).encode()


class Writers:
    """Producers: two that take turns, one for the added partitions, one with transactions."""

    def __init__(self, broker: KafkaBroker, sent: Sent, draw: random.Random) -> None:
        self._broker, self.sent, self._draw = broker, sent, draw
        self.two = [self._producer(), self._producer()]
        self.grown = self._producer()
        self.transactional = self._producer(**{"transactional.id": "t"})
        self.transactional.init_transactions(LIMIT_S)
        self.partitions = dict(PARTITIONS)
        self.lost: list[str] = []
        self._transactions = 0

    def _producer(self, **settings: str) -> Producer:
        return self._broker.producer(
            **{"linger.ms": "1", "reconnect.backoff.max.ms": "200"} | settings
        )

    def send(self, count: int = 3) -> None:
        """Send rows to all topics but the one with transactions."""
        for topic in PARTITIONS:
            for _ in range(count) if topic != "committed" else ():
                self.one(topic, now_ms() - self._draw.randrange(DELAY_MS // 2))
        for producer in (*self.two, self.grown):
            producer.poll(0)

    def one(self, topic: str, at_ms: int, key: str | None = None, may: bool = False) -> None:
        number, value = self.sent.row(topic, at_ms, may=may)
        producer = self.grown if topic == "grown" else self._draw.choice(self.two)
        producer.produce(
            topic,
            value,
            key=key or f"{number}",
            partition=self._draw.randrange(self.partitions[topic]),
            timestamp=at_ms,
            on_delivery=self._on_delivery,
        )

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None:
            self.lost.append(str(error))

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Send rows in a transaction; each third is given up, with rows of the far future."""
        self._transactions += 1
        given_up = self._transactions % 3 == 0
        self.transactional.begin_transaction()
        for _ in range(8):
            at_ms = now_ms() - self._draw.randrange(DELAY_MS // 2)
            if given_up:
                value = json.dumps({"id": -1, "at": at_ms + FAR_MS}).encode()
                at_ms += FAR_MS
            else:
                value = self.sent.row("committed", at_ms)[1]
            place = self._draw.randrange(PARTITIONS["committed"])
            self.transactional.produce("committed", value, partition=place, timestamp=at_ms)
        yield
        end = self.transactional.abort_transaction
        if not given_up:
            end = self.transactional.commit_transaction
        eventually(lambda: _ends(end), LIMIT_S)

    def grow(self) -> None:
        self.grown.flush(LIMIT_S)
        self._broker.grow("grown", 3)
        self.partitions["grown"] = 3
        self.grown = self._producer()

    def flush(self) -> None:
        for producer in (*self.two, self.grown):
            assert producer.flush(LIMIT_S) == 0


def _ends(end: Any) -> bool:
    try:
        end(LIMIT_S)
    except KafkaException as error:
        if not error.args[0].retriable():
            raise
        return False
    return True


def now_ms() -> int:
    return round(time.time() * 1000)


def compact(broker: KafkaBroker, writers: Writers) -> int:
    """Fill the compacted topic until the broker has dropped rows; return how many."""
    for number in range(10):
        for key in range(KEYS):
            writers.one("compacted", now_ms(), f"key {key}", may=number < 9)
        writers.flush()
        time.sleep(0.3)
    sent = 10 * KEYS
    eventually(lambda: len(stored(broker, "compacted")) < sent, LIMIT_S, 0.5)
    return sent - len(stored(broker, "compacted"))


def stored(broker: KafkaBroker, topic: str) -> Rows:
    """Return what a topic holds: the timestamp of each row."""
    consumer = Consumer(
        {"bootstrap.servers": broker.address, "group.id": "test", "enable.partition.eof": True}
    )
    places = consumer.list_topics(topic, LIMIT_S).topics[topic].partitions
    consumer.assign([TopicPartition(topic, place, 0) for place in places])
    found, ended = {}, 0
    while ended < len(places):
        message = consumer.poll(LIMIT_S)
        assert message is not None
        if message.error() is not None:
            ended += 1
        else:
            found[json.loads(message.value() or b"")["id"]] = message.timestamp()[1]
    consumer.close()
    return found


def load(spark: SparkSession, broker: KafkaBroker, query: str) -> DataFrame:
    """Return the query's rows, with columns ``at`` and ``id``."""
    topic = TOPIC_OF[query]
    if query.startswith("ours_"):
        rows = kafka_topic(
            spark, broker.address, topic, schema="id int, at long", columns=["timestamp"]
        )
        return rows.select(F.col("timestamp").alias("at"), "id")
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address)
    reader = reader.option("subscribe", topic).option("startingOffsets", "earliest")
    if topic == "committed":
        reader = reader.option("kafka.isolation.level", "read_committed")
    field = "get_json_object(cast(value as string), '$.{}')"
    at = "timestamp"
    if query == "committed_payload":
        at = f"timestamp_millis(cast({field.format('at')} as bigint))"
    return reader.load().selectExpr(f"{at} as at", f"cast({field.format('id')} as int) as id")


class Results:
    """The windows of each query, as they came."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.windows: dict[str, list[tuple[int, list[int]]]] = defaultdict(list)

    def take(self, query: str, batch: DataFrame) -> None:
        rows = [(int(row.end), sorted(row.ids)) for row in batch.collect()]
        with self._lock:
            self.windows[query] += rows

    def ends(self, query: str) -> set[int]:
        with self._lock:
            return {end for end, _ in self.windows[query]}


def start(fleet: Fleet, broker: KafkaBroker, results: Results, query: str) -> None:
    rows = load(fleet.spark, broker, query).withWatermark("at", f"{DELAY_MS} milliseconds")
    window = F.window("at", f"{WINDOW_MS} milliseconds")
    counted = rows.groupBy(window).agg(F.collect_list("id").alias("ids"))
    found = counted.select(F.unix_millis("window.end").alias("end"), "ids")
    told = kafka_frontier(lambda record: json.loads(record.value or b"")["at"] / 1000)
    fleet.start(
        found.writeStream.outputMode("append").foreachBatch(
            lambda batch, number: results.take(query, batch)
        ),
        name=query,
        frontier=told if query == "committed_payload" else None,
    )


def windows_of(rows: Rows) -> dict[int, set[int]]:
    """Return numbers by the end of their window, of windows that must have come."""
    closed_ms = max(rows.values()) - DELAY_MS
    found: dict[int, set[int]] = defaultdict(set)
    for number, at_ms in rows.items():
        found[(at_ms // WINDOW_MS + 1) * WINDOW_MS].add(number)
    return {end: numbers for end, numbers in found.items() if end <= closed_ms}


def mistakes(came: list[tuple[int, list[int]]], must: Rows, may: Rows) -> list[str]:
    """Compare what came with what must have and what may have."""
    wanted, allowed = windows_of(must), windows_of(must | may)
    found = [f"window {end} never came" for end in wanted.keys() - {end for end, _ in came}]
    ends = [end for end, _ in came]
    found += [f"window {end} came twice" for end in set(ends) if ends.count(end) > 1]
    for end, numbers in came:
        if len(set(numbers)) < len(numbers):
            found.append(f"window {end} has rows twice")
        if missing := wanted.get(end, set()) - set(numbers):
            found.append(f"window {end} lacks {sorted(missing)}")
        if more := set(numbers) - allowed.get(end, set()):
            found.append(f"window {end} has {sorted(more)} too much")
    return found


def write_all(broker: KafkaBroker, writers: Writers) -> None:
    """Send for a while; the broker is killed while rows are on their way to it."""
    for number in range(ROUNDS):
        with writers.transaction():
            writers.send()
        if number == KILLED:
            writers.send()
            broker.kill()
            broker.start()
            writers.flush()  # before any newer row
        if number == GROWN:
            writers.grow()
        time.sleep(PAUSE_S)
    writers.flush()
    time.sleep((WINDOW_MS + DELAY_MS) / 1000)
    writers.send(count=6)  # these end the windows before them
    for _ in range(3):
        with writers.transaction():
            pass
    writers.flush()


def truth(broker: KafkaBroker, sent: Sent, topic: str) -> tuple[Rows, Rows]:
    if topic == "appended":  # the broker has said when
        return stored(broker, topic), {}
    return sent.must[topic], sent.may[topic]


def main(folder: Path) -> None:
    broker = KafkaBroker(folder)
    for topic, partitions in PARTITIONS.items():
        broker.create(topic, partitions, **SETTINGS.get(topic, {}))
    conf = {"spark.sql.shuffle.partitions": "1", "spark.jars": ",".join(connector_jars())}
    spark = session("hard-topics", "local[2]", conf=conf)
    spark.sparkContext.setLogLevel("OFF")
    writers, results = Writers(broker, Sent(), random.Random(1)), Results()
    dropped = compact(broker, writers)
    with Fleet(spark, "klink") as fleet:
        for query in TOPIC_OF:
            start(fleet, broker, results, query)
        write_all(broker, writers)
        rows = {query: truth(broker, writers.sent, topic) for query, topic in TOPIC_OF.items()}
        late = []
        for query, (must, _) in rows.items():
            try:
                eventually(
                    lambda must=must, query=query: windows_of(must).keys() <= results.ends(query),
                    LIMIT_S / 3,
                )
            except AssertionError:
                late.append(query)
        status = {row.name: row for row in fleet.status().queries}
    print(
        json.dumps(
            {
                "mistakes": {
                    query: mistakes(results.windows[query], *rows[query]) for query in TOPIC_OF
                },
                "windows": {query: len(windows_of(rows[query][0])) for query in TOPIC_OF},
                "late": late,
                "why_two_batches": {name: row.why_two_batches for name, row in status.items()},
                "restarts": {name: row.restarts for name, row in status.items() if row.restarts},
                "errors": {name: row.error for name, row in status.items() if row.error},
                "late_rows": {name: row.rows_dropped_by_watermark for name, row in status.items()},
                "compacted_away": dropped,
                "lost": writers.lost,
            }
        ),
        flush=True,
    )
    spark.stop()
    broker.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
