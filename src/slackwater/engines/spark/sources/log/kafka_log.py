"""Kafka topics as a log. A position is the offset of the next message of a partition.

Offsets of compacted topics and of transactions have gaps, so a difference of offsets is the most
messages that can lie between.
"""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.log.errors import DataGone, ServerAway, data_gone
from slackwater.engines.spark.sources.log.kafka_options import KafkaOptions
from slackwater.engines.spark.sources.log.kafka_rows import KafkaRows
from slackwater.engines.spark.sources.log.log import Position, Rows, Stream
from slackwater.engines.spark.sources.log.outage import Outage
from slackwater.engines.spark.sources.log.secrets import reveal

_ANSWER_S = 5.0  # after this a server that does not answer counts as away
_POLL_S = 0.1  # how long a fetch waits for more than it has
_MESSAGES_AT_ONCE = 10_000
_PARTITIONS_LAST_S = 30.0  # partitions may be added to a topic: look again after this

_GONE = {KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE}
_AWAY = {
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
    KafkaError._TIMED_OUT_QUEUE,
    KafkaError._TRANSPORT,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}

T = TypeVar("T")


@dataclass(frozen=True)
class KafkaPartition:
    """What Kafka told about a partition."""

    earliest: int
    latest: int

    def missing_after(self, position: Position) -> int | None:
        """
        >>> partition = KafkaPartition(earliest=4, latest=9)
        >>> [partition.missing_after(position) for position in (1, 4, 9, 10)]
        [3, 0, 0, None]
        """
        if position > self.latest:
            return None  # the topic was made anew
        return max(0, self.earliest - int(position))

    def resume(self, position: Position) -> Position:
        return min(max(int(position), self.earliest), self.latest)


class KafkaLog:
    """Topics of one cluster; a stream is called ``topic-partition``."""

    def __init__(self, options: KafkaOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._partitions: list[TopicPartition] = []
        self._looked_s = float("-inf")

    # -- planning -------------------------------------------------------------------------------

    def look(self) -> dict[str, Stream]:
        partitions = self._topic_partitions()
        both: Any = OffsetSpec  # its methods have no types
        ends = [self._ask(partitions, which) for which in (both.earliest(), both.latest())]
        earliest, latest = ({n: _answer(future) for n, future in end.items()} for end in ends)
        return {name: KafkaPartition(earliest[name], latest[name]) for name in earliest}

    def ordinal(self, position: Position) -> int:
        return int(position)

    def arrived_us(self, position: Position) -> int | None:
        return None

    def advance(self, name: str, position: Position, rows: int) -> Position:
        return position + rows

    def _topic_partitions(self) -> list[TopicPartition]:
        if time.monotonic() - self._looked_s < _PARTITIONS_LAST_S:
            return self._partitions
        # Of all topics: asking for one by name would create it where brokers do that.
        found = _speak(lambda: _admin(self._options).list_topics(timeout=_ANSWER_S)).topics
        partitions = []
        for topic in self._options.topics:
            if topic not in found:
                raise UsageError(f"{self._options.server} has no topic {topic}: create it first")
            error = found[topic].error
            if error is not None:
                raise _translated(error)
            partitions += [TopicPartition(topic, number) for number in found[topic].partitions]
        self._partitions, self._looked_s = partitions, time.monotonic()
        return partitions

    def _ask(self, partitions: list[TopicPartition], which: OffsetSpec) -> dict[str, Future[Any]]:
        """One end of all partitions at once; the answers are still on their way."""
        level = self._options.client_settings().get("isolation.level", "read_committed")
        futures = _admin(self._options).list_offsets(
            dict.fromkeys(partitions, which),
            isolation_level=IsolationLevel[level.upper()],
            request_timeout=_ANSWER_S,
        )
        return {f"{place.topic}-{place.partition}": future for place, future in futures.items()}

    # -- reading --------------------------------------------------------------------------------

    def read(self, name: str, first: Position, last: Position) -> Iterator[Rows]:
        outage = Outage(self._options.server, self._options.retry_s)
        topic, _, partition = name.rpartition("-")
        consumer = _consumer(self._options)
        consumer.assign([TopicPartition(topic, int(partition), first)])
        position = first
        try:
            while position < last:
                fetched = consumer.consume(min(last - position, _MESSAGES_AT_ONCE), _POLL_S)
                whole = (message for message in fetched if message.error() is None)
                messages = [message for message in whole if position <= _offset(message) < last]
                if messages:
                    outage.over()
                    position = _offset(messages[-1]) + 1
                    yield KafkaRows(name, messages, self._options, self._schema)
                if any(m.error() is None and _offset(m) >= last for m in fetched):
                    return  # offsets have gaps: the last messages before the end may be missing
                try:
                    if self._is_at_end(name, fetched, last):
                        return
                except DataGone:
                    if self._options.fail_on_data_loss:
                        raise
                    consumer.assign([TopicPartition(topic, int(partition), OFFSET_BEGINNING)])
                except ServerAway as error:
                    outage.note(error)
        finally:
            consumer.unassign()

    def _is_at_end(self, name: str, fetched: list[Message], last: int) -> bool:
        """Whether there is nothing more to come; raises what the errors among messages say."""
        if not fetched:
            raise ServerAway(f"nothing came of {name}")
        for error, offset in ((message.error(), message.offset()) for message in fetched):
            if error is None:
                continue
            if error.code() in _GONE:
                raise data_gone(name, "rows")
            if error.code() != KafkaError._PARTITION_EOF:
                raise _translated(error)
            if offset is not None and offset < last and self._options.fail_on_data_loss:
                raise ServerAway(f"{name} ends at {offset}, {last} was there before")
            return True
        return False


def _offset(message: Message) -> int:
    offset = message.offset()
    assert offset is not None  # it comes from a broker
    return offset


def _answer(future: "Future[Any]") -> int:
    return int(_speak(lambda: future.result(_ANSWER_S)).offset)


def _speak(action: Callable[[], T]) -> T:
    """Tell a server that may come back from one that refuses."""
    try:
        return action()
    except KafkaException as error:
        raise _translated(error.args[0]) from None
    except TimeoutError:
        raise ServerAway("no answer in time") from None


def _translated(error: KafkaError) -> SlackwaterError:
    if error.code() in _AWAY or error.retriable():
        return ServerAway(error.str())
    return SlackwaterError(f"Kafka refuses a request of the source: {error.str()}")


@lru_cache(maxsize=8)
def _admin(options: KafkaOptions) -> AdminClient:
    return AdminClient(_settings(options))


@lru_cache(maxsize=8)  # a worker serves many batches
def _consumer(options: KafkaOptions) -> Consumer:
    """Reads partitions that it is told; it is no member of a group and commits nothing."""
    ours = {
        "group.id": "slackwater",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "queued.min.messages": _MESSAGES_AT_ONCE,
    }
    return Consumer(ours | _settings(options))


def _settings(options: KafkaOptions) -> dict[str, Any]:
    """What all clients need; the library's own messages are left to errors, which say the same."""
    own = {name: reveal(text) for name, text in options.client_settings().items()}
    return {"bootstrap.servers": options.servers, "log_level": 2} | own
