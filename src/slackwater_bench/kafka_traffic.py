"""The traffic of a benchmark over a real Kafka broker: a topic for each query.

Broker and producer run in processes that no reader is the parent of, so that whoever measures a
driver's CPU does not count theirs. ``python -m slackwater_bench.kafka_traffic FOLDER`` is that
producer: it starts a broker, says where, and reads from its standard input which topics it shall
fill. When that is closed it stops the broker, says how late it was, and ends.

A message's timestamp is its event time, in whole milliseconds; its value is a JSON object.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from operator import itemgetter
from pathlib import Path
from select import select
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.common.procfs import CpuMeter
from slackwater.core.clock import RealClock
from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater_bench.kafka_broker import KafkaBroker, require

if TYPE_CHECKING:
    from confluent_kafka import Producer

TICK_S = 0.02  # messages that are due are sent so often
AHEAD_US = 1_000_000  # they are made ready for so long at a time
_FLUSH_S = 60.0
_SETTINGS = {
    "linger.ms": "2",
    "log_level": "0",  # what it has to say is not why a trial fails
    "queue.buffering.max.messages": "2000000",
    "queue.buffering.max.kbytes": "1000000",
}
# The child is left to the system, with the pipes of its parent.
_ADOPTED = 'exec 3<&0; "$@" <&3 &'
_QUOTED = r'["\\\x00-\x1f]'


class Due(NamedTuple):
    """One message, to be sent when its event arrives."""

    arrival_us: int
    partition: int
    timestamp_ms: int
    value: bytes


class KafkaTraffic:
    """A broker and its producer, seen from the process that measures.

    Parameters
    ----------
    folder
        Where the broker keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        require()
        command = [sys.executable, "-m", __spec__.name, str(folder)]
        self._process = subprocess.Popen(
            ["sh", "-c", _ADOPTED, "sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._process.wait()
        found = self._answer("the Kafka broker did not start")
        self.address: str = found["address"]
        self._broker = CpuMeter(found["broker"])
        self._producer = CpuMeter(found["producer"])

    def start(self, topics: Mapping[str, FeedOptions]) -> None:
        """Make a topic for each stream and begin; return when all that has arrived is there."""
        asked = {name: options.texts() for name, options in topics.items()}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        self._answer("the Kafka broker did not take the events")

    def events(
        self, spark: SparkSession, topic: str, options: FeedOptions, **more: str
    ) -> DataFrame:
        """Return a topic as its feed would have it, by Spark's own connector.

        Parameters
        ----------
        more
            Options of the connector.
        """
        payload = options.payload()
        reader = spark.readStream.format("kafka").options(**more)
        reader = reader.option("kafka.bootstrap.servers", self.address)
        rows = reader.option("subscribe", topic).option("startingOffsets", "earliest").load()
        value = F.from_json(F.col("value").cast("string"), payload.schema).alias("event")
        return rows.select(value, F.col("timestamp").alias(payload.event_time)).select(
            "event.*", payload.event_time
        )

    def cpu_s(self) -> dict[str, float]:
        """Return CPU seconds of the broker and of its producer so far."""
        broker, both = self._broker.read(), self._producer.read()  # the one is a child of the other
        return {"broker": broker, "producer": max(0.0, both - broker)}

    def stop(self) -> float:
        """Have both end; return by how many seconds a message was late at most."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return float(self._answer("the producer has failed")["late_s"])

    def close(self) -> None:
        """Have both end, if they have not, and wait until they are gone."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.read()
        self._process.stdout.close()

    def _answer(self, failed: str) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EngineError(failed)
        found: dict[str, Any] = json.loads(line)
        return found


@contextmanager
def kafka_traffic() -> Iterator[KafkaTraffic]:
    """Have a broker for a while."""
    with tempfile.TemporaryDirectory(prefix="slackwater-kafka-") as folder:
        traffic = KafkaTraffic(Path(folder))
        try:
            yield traffic
        finally:
            traffic.close()


class TopicTraffic:
    """The messages of one topic, in the order in which their events arrive."""

    def __init__(self, topic: str, options: FeedOptions) -> None:
        self.topic = topic
        self._payload = options.payload()
        self._timeline = options.traffic.timeline()
        self._until_us = self._timeline.start_us - 1
        self._ready: list[Due] = []
        self._sent = 0  # of those that are ready

    def due(self, now_us: int) -> Iterator[Due]:
        """Yield those whose time has come; each once."""
        while True:
            while self._sent < len(self._ready):
                message = self._ready[self._sent]
                if message.arrival_us > now_us:
                    return
                self._sent += 1
                yield message
            if self._until_us >= now_us:
                return
            self._ready, self._sent = self._next(), 0

    def _next(self) -> list[Due]:
        after_us, self._until_us = self._until_us, self._until_us + AHEAD_US
        found: list[Due] = []
        for partition in range(self._timeline.partitions):
            arrivals = self._timeline.arrived(after_us, self._until_us, partition)
            if len(arrivals):
                values = json_objects(self._payload.columns(partition, arrivals.index))
                times = arrivals.arrival_us.tolist(), (arrivals.event_us // 1000).tolist()
                numbers = [partition] * len(values)
                found += map(Due._make, zip(times[0], numbers, times[1], values, strict=True))
        return sorted(found, key=itemgetter(0)) if self._timeline.partitions > 1 else found


def json_objects(columns: Mapping[str, pa.Array]) -> list[bytes]:
    """Return each row of some columns as a JSON object.

    >>> json_objects({"ad": pa.array(["a", "b"]), "price": pa.array([1.5, 2.5])})
    [b'{"ad":"a","price":1.5}', b'{"ad":"b","price":2.5}']
    """
    parts: list[Any] = []
    for name, column in columns.items():
        begin = f'{"," if parts else "{"}"{name}":'
        if column.null_count:
            raise UsageError(f"{name} has nulls: it is not written as JSON")
        if pa.types.is_string(column.type):
            if pc.any(pc.match_substring_regex(column, _QUOTED)).as_py():
                raise UsageError(f"{name} has quotes or control characters: not written as JSON")
            parts += [f'{begin}"', column, '"']
        elif pa.types.is_integer(column.type) or pa.types.is_floating(column.type):
            parts += [begin, column.cast(pa.string())]
        else:
            raise UsageError(f"{name} is {column.type}: it is not written as JSON")
    objects = pc.binary_join_element_wise(*parts, "}", "").cast(pa.binary())
    found: list[bytes] = objects.to_pylist()
    return found


class _Sender:
    """Sends the messages of all topics when they are due."""

    def __init__(self, producer: "Producer", topics: list[TopicTraffic]) -> None:
        self._producer = producer
        self._topics = topics
        self._clock = RealClock()
        self.late_s = 0.0  # of messages that had not arrived before it began

    def send(self, noting: bool = True) -> None:
        """Send what is due by now."""
        now_us = round(self._clock.now() * 1e6)
        for topic in self._topics:
            first_us = None
            for message in topic.due(now_us):
                first_us = message.arrival_us if first_us is None else first_us
                self._put(topic.topic, message)
            if noting and first_us is not None:
                self.late_s = max(self.late_s, self._clock.now() - first_us / 1e6)
        self._producer.poll(0)

    def flush(self) -> None:
        """Wait until the broker has everything."""
        if self._producer.flush(_FLUSH_S):
            raise EngineError("the Kafka broker does not take the events")

    def _put(self, topic: str, message: Due) -> None:
        while True:
            try:
                self._producer.produce(
                    topic,
                    message.value,
                    partition=message.partition,
                    timestamp=message.timestamp_ms,
                )
                return
            except BufferError:
                self._producer.poll(0.1)


def main(folder: Path) -> None:
    """Start a broker, fill topics until standard input is closed, stop it."""
    broker = KafkaBroker(folder)
    try:
        _say({"address": broker.address, "broker": broker.pid, "producer": os.getpid()})
        line = sys.stdin.readline()
        if not line:
            return
        topics = []
        for name, texts in json.loads(line).items():
            options = FeedOptions.from_texts(texts)
            broker.create(name, options.traffic.partitions)
            topics.append(TopicTraffic(name, options))
        sender = _Sender(broker.producer(**_SETTINGS), topics)
        sender.send(noting=False)  # what has waited for long
        sender.flush()
        _say({})
        while not select([sys.stdin], [], [], TICK_S)[0]:
            sender.send()
        _say({"late_s": round(sender.late_s, 4)})
    finally:
        broker.stop()


def _say(found: Mapping[str, Any]) -> None:
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
