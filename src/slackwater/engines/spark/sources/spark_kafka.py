"""How far Spark's own Kafka source has come, asked with the client of its connector, in the JVM.

Where the watermark is on the source's ``timestamp``, one request tells the largest of each
partition (KIP-734). An event time inside the payload is the user's to read: of the newest record of
each partition, which a consumer of its own fetches.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from py4j.java_gateway import JavaClass, JavaObject

from slackwater.engines.spark.sources.remote_frontier import RemoteFrontier, offset_read

FORMAT, TIMESTAMP = "kafka", "timestamp"
CLIENTS = "org.apache.kafka.clients"
_DESERIALIZER = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_ANSWER_MS = 5_000  # after this a broker that does not answer has failed
CLOSE_MS = 500  # nobody waits for the end of a client
_BACK = 4  # offsets from the end of a partition: the last may be the mark of a transaction

Partition = tuple[str, int]  # topic, number


@dataclass(frozen=True, slots=True)
class KafkaRecord:
    """One record of a topic."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None


EventTimeOf = Callable[[KafkaRecord], datetime | float | None]


@dataclass(frozen=True)
class PayloadTimes:
    """Reads the event time out of a record's payload."""

    event_time: EventTimeOf


def kafka_frontier(event_time: EventTimeOf) -> PayloadTimes:
    """Tell how far Spark's own Kafka source has come, where event times are in the payload.

    Give it to :meth:`Fleet.start` as ``frontier``. The newest record of each partition that the
    query has not read yet is fetched with the settings of its source (``kafka.…``).

    Parameters
    ----------
    event_time
        Returns the event time of a record, just as the query computes the column of its watermark:
        a ``datetime`` with a zone, or seconds since the epoch. None: it has none, or cannot be
        read.
    """
    return PayloadTimes(event_time)


class Topics:
    """What one query reads, asked through Py4J."""

    def __init__(
        self, execution: JavaObject, place: int, places: int, options: Mapping[str, str]
    ) -> None:
        self._execution = execution
        self._place = place, places
        self.settings = client_settings(options)
        self._java: dict[Partition, JavaObject] = {}

    def java(self, name: str) -> JavaClass:
        """Return a class of the connector's client."""
        return JavaClass(name, self._execution._gateway_client)

    def duration(self, milliseconds: int) -> JavaObject:
        """Return Java's own object for a time span."""
        return self.java("java.time.Duration").ofMillis(milliseconds)

    def admin(self) -> JavaObject:
        """Return a new client that asks brokers, and does not wait for long."""
        limits = {"default.api.timeout.ms": _ANSWER_MS, "request.timeout.ms": _ANSWER_MS}
        return self.java(f"{CLIENTS}.admin.Admin").create(self.settings | limits)

    def read(self) -> dict[Partition, int]:
        """Return up to which offset each partition has been read."""
        offset = offset_read(self._execution, *self._place) or {}
        return {
            (topic, int(number)): int(at)
            for topic, partitions in offset.items()
            for number, at in partitions.items()
        }

    def partition(self, name: Partition) -> JavaObject:
        """Return Kafka's own object for a partition."""
        if name not in self._java:
            self._java[name] = self.java("org.apache.kafka.common.TopicPartition")(*name)
        return self._java[name]


class _LargestTimestamps:
    """Asks for the largest timestamp of each partition."""

    def __init__(self, topics: Topics) -> None:
        self._topics = topics
        self._admin: JavaObject = None

    def newest_us(self) -> int | None:
        read = self._topics.read()
        if not read:
            return None
        java = self._topics.java
        if self._admin is None:
            self._admin = self._topics.admin()
        largest = java(f"{CLIENTS}.admin.OffsetSpec").maxTimestamp()
        wanted = {self._topics.partition(name): largest for name in read}
        answers = parse_timestamps(self._admin.listOffsets(wanted).all().get().toString())
        new = [ms for name, (offset, ms) in answers.items() if offset >= read[name]]
        return 1000 * max(new) if new else None

    def close(self) -> None:
        if self._admin is not None:
            self._admin.close(self._topics.duration(CLOSE_MS))


class _NewestRecords:
    """Fetches the newest record of each partition, and has its event time read."""

    def __init__(self, topics: Topics, event_time: EventTimeOf) -> None:
        self._topics = topics
        self._event_time = event_time
        self._consumer: JavaObject = None

    def newest_us(self) -> int | None:
        read = self._topics.read()
        if not read:
            return None
        if self._consumer is None:
            self._consumer = self._open()
        limit = self._topics.duration(_ANSWER_MS)
        partitions = [self._topics.partition(name) for name in read]
        ends = parse_offsets(self._consumer.endOffsets(partitions, limit).toString())
        times = [_microseconds(self._event_time(each)) for each in self._last(read, ends, limit)]
        return max((us for us in times if us is not None), default=None)

    def _open(self) -> JavaObject:
        ours = {
            "key.deserializer": _DESERIALIZER,
            "value.deserializer": _DESERIALIZER,
            "enable.auto.commit": "false",
            "auto.offset.reset": "none",
        }
        others = {k: v for k, v in self._topics.settings.items() if k != "group.id"}
        return self._topics.java(f"{CLIENTS}.consumer.KafkaConsumer")(others | ours)

    def _last(
        self, read: Mapping[Partition, int], ends: Mapping[Partition, int], limit: JavaObject
    ) -> list[KafkaRecord]:
        """Return the last record of each partition that has some after what was read."""
        missing = {name: end for name, end in ends.items() if end > read[name]}
        partitions = [self._topics.partition(name) for name in missing]
        self._consumer.assign(partitions)
        self._consumer.resume(partitions)
        for name, end in missing.items():
            at = max(read[name], end - _BACK)
            self._consumer.seek(self._topics.partition(name), at)
        found = []
        while missing:
            records = self._consumer.poll(limit)
            if records.isEmpty():
                break  # nothing came in time
            for name in list(missing):
                partition = self._topics.partition(name)
                own = records.records(partition)
                if own.size():
                    found.append(_record(name, own.get(own.size() - 1)))
                    # Or all that comes there is read, while another has marks of transactions only.
                    self._consumer.pause([partition])
                    del missing[name]
        return found

    def close(self) -> None:
        if self._consumer is not None:
            self._consumer.close(self._topics.duration(CLOSE_MS))


def client_settings(options: Mapping[str, str]) -> dict[str, str]:
    """Return the settings that a source hands on to its client.

    >>> client_settings({"kafka.bootstrap.servers": "a:9092", "subscribe": "clicks"})
    {'bootstrap.servers': 'a:9092'}
    """
    return {
        name[len("kafka.") :]: text
        for name, text in options.items()
        if name.lower().startswith("kafka.")
    }


def kafka_source_frontier(
    execution: JavaObject,
    place: int,
    places: int,
    options: Mapping[str, str],
    event_time: EventTimeOf | None = None,
) -> RemoteFrontier:
    """Return the frontier of Spark's Kafka source: of its timestamps, or of times in payloads."""
    topics = Topics(execution, place, places, options)
    asked: _LargestTimestamps | _NewestRecords
    asked = _LargestTimestamps(topics) if event_time is None else _NewestRecords(topics, event_time)
    return RemoteFrontier(asked.newest_us, asked.close)


def parse_timestamps(text: str) -> dict[Partition, tuple[int, int]]:
    """Return offset and timestamp by partition: one call, not several for each.

    >>> parse_timestamps("{a-b-0=ListOffsetsResultInfo(offset=7, timestamp=1500, leaderEpoch=…)}")
    {('a-b', 0): (7, 1500)}
    """
    pattern = r"([\w.-]+)-(\d+)=ListOffsetsResultInfo\(offset=(-?\d+), timestamp=(-?\d+)"
    return {
        (topic, int(number)): (int(offset), int(ms))
        for topic, number, offset, ms in re.findall(pattern, text)
    }


def parse_offsets(text: str) -> dict[Partition, int]:
    """Return offsets by partition.

    >>> parse_offsets("{a-b-0=7, c-12=0}")
    {('a-b', 0): 7, ('c', 12): 0}
    """
    found = re.findall(r"([\w.-]+)-(\d+)=(\d+)", text)
    return {(topic, int(number)): int(offset) for topic, number, offset in found}


def _record(name: Partition, record: JavaObject) -> KafkaRecord:
    return KafkaRecord(
        *name,
        offset=record.offset(),
        timestamp_ms=record.timestamp(),
        key=_bytes(record.key()),
        value=_bytes(record.value()),
    )


def _bytes(value: JavaObject) -> bytes | None:
    return None if value is None else bytes(value)


def _microseconds(time: datetime | float | None) -> int | None:
    if time is None:
        return None
    seconds = time.timestamp() if isinstance(time, datetime) else time
    return int(1e6 * seconds + 0.25)  # a float of our days is off by less than that
