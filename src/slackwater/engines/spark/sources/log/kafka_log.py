"""Kafka topics as a log. A position is the offset of the next message of a partition.

Offsets of compacted topics and of transactions have gaps, so a difference of offsets is the most
messages that can lie between.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
from confluent_kafka import (
    OFFSET_BEGINNING,
    TIMESTAMP_NOT_AVAILABLE,
    Consumer,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]
from numpy.typing import NDArray

from slackwater.core.clock import Deadline
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.base import Ints
from slackwater.engines.spark.sources.kafka import KafkaOptions
from slackwater.engines.spark.sources.log.columns import JsonColumns, text_column
from slackwater.engines.spark.sources.log.log import (
    NEWEST_ROWS,
    DataGone,
    LogRows,
    Outage,
    Position,
    Positions,
    ServerAway,
    Stream,
    data_gone,
)
from slackwater.engines.spark.sources.options import reveal

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
        """Count rows that are gone.

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
        self._look_again = Deadline(0.0)  # for partitions that were added

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
        if not self._look_again.passed:
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
        self._partitions, self._look_again = partitions, Deadline(_PARTITIONS_LAST_S)
        return partitions

    def _ask(self, partitions: list[TopicPartition], which: OffsetSpec) -> dict[str, Future[Any]]:
        """Ask for one end of all partitions at once; the answers are still on their way."""
        level = self._options.client_settings().get("isolation.level", "read_committed")
        futures = _admin(self._options).list_offsets(
            dict.fromkeys(partitions, which),
            isolation_level=IsolationLevel[level.upper()],
            request_timeout=_ANSWER_S,
        )
        return {f"{place.topic}-{place.partition}": future for place, future in futures.items()}

    # -- the newest -----------------------------------------------------------------------------

    def newest(self, column: str, after: Positions) -> Iterator[pa.Array]:
        which: Any = OffsetSpec  # its methods have no types
        ends = self._ask([_place(name, 0) for name in after], which.latest()) if after else {}
        spans = {}
        for name, future in ends.items():
            end = _answer(future)
            if end > after[name]:
                spans[name] = max(after[name], end - NEWEST_ROWS), end
        for name, messages in self._fetch(spans).items():
            if messages:
                yield KafkaRows(name, messages, self._options, self._schema).column(column)

    def _fetch(self, spans: dict[str, tuple[int, int]]) -> dict[str, list[Message]]:
        """Read a few messages of several partitions at once, as many as come in time."""
        found: dict[str, list[Message]] = {name: [] for name in spans}
        missing, limit = set(spans), Deadline(_ANSWER_S)
        self._tail.assign([_place(name, first) for name, (first, _) in spans.items()])
        try:
            while missing and not limit.passed:
                message = self._tail.poll(_POLL_S)
                if message is None:
                    continue
                name, error = f"{message.topic()}-{message.partition()}", message.error()
                if error is None:
                    found[name].append(message)
                    ended = _offset(message) + 1 >= spans[name][1]
                elif error.code() == KafkaError._PARTITION_EOF:
                    ended = True  # offsets have gaps
                else:
                    raise _translated(error)
                if ended:
                    missing.discard(name)
        finally:
            self._tail.unassign()
        return found

    @cached_property
    def _tail(self) -> Consumer:
        """A consumer that nobody shares."""
        return _new_consumer(self._options, wait_ms=1)

    # -- reading --------------------------------------------------------------------------------

    def read(self, name: str, first: Position, last: Position) -> Iterator[LogRows]:
        outage = Outage(self._options.server, self._options.retry_s)
        consumer = _consumer(self._options)
        consumer.assign([_place(name, first)])
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
                    consumer.assign([_place(name, OFFSET_BEGINNING)])
                except ServerAway as error:
                    outage.note(error)
        finally:
            consumer.unassign()

    def _is_at_end(self, name: str, fetched: list[Message], last: int) -> bool:
        """Tell whether there is nothing more to come; raises what the errors among messages say."""
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


def _place(name: str, offset: int) -> TopicPartition:
    """Return an offset in the partition that a stream is."""
    topic, _, partition = name.rpartition("-")
    return TopicPartition(topic, int(partition), offset)


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
    return _new_consumer(options, wait_ms=20)


def _new_consumer(options: KafkaOptions, wait_ms: int) -> Consumer:
    """Make a consumer that reads what it is told, belongs to no group and commits nothing."""
    ours = {
        "group.id": "slackwater",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
        "queued.min.messages": _MESSAGES_AT_ONCE,
        "fetch.wait.max.ms": wait_ms,  # a fetch under way at the end of one read delays the next
    }
    return Consumer(ours | _settings(options))


def _settings(options: KafkaOptions) -> dict[str, Any]:
    """Return what all clients need; the library's own messages say what errors say as well."""
    own = {name: reveal(text) for name, text in options.client_settings().items()}
    return {"bootstrap.servers": options.servers, "log_level": 2} | own


class KafkaRows:
    """Messages of one partition of a topic."""

    def __init__(
        self, name: str, messages: Sequence[Message], options: KafkaOptions, schema: pa.Schema
    ) -> None:
        self._name = name
        self._messages = messages
        self._options = options
        self._schema = schema

    @cached_property
    def numbers(self) -> Ints:
        return np.array([message.offset() for message in self._messages], np.int64)

    @property
    def arrival_us(self) -> Ints | None:
        """Return the broker's time, or the producer's: a reader knows when rows can have come."""
        times = [message.timestamp() for message in self._messages]
        if any(kind == TIMESTAMP_NOT_AVAILABLE for kind, _ in times):
            return None
        return np.array([milliseconds for _, milliseconds in times], np.int64) * 1000

    def column(self, name: str) -> pa.Array:
        return self._all.column(name)

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        return self._all if kept is None else self._all.take(pa.array(kept))

    @cached_property
    def _all(self) -> pa.RecordBatch:
        """Parse all messages: JSON has to be parsed before a row's event time is known."""
        values = [message.value() for message in self._messages]
        extra = {name: self._extra(name) for name in self._options.columns}
        if self._options.value == "json":
            own = pa.schema([field for field in self._schema if field.name not in extra])
            columns = JsonColumns(own, self._options.timestamps, self._options.malformed)
            parsed = columns.parse(values, self._name)
            found = {name: parsed.column(name).combine_chunks() for name in own.names}
        else:
            found = {"value": self._value(values)}
        found |= {name: pa.array(*column) for name, column in extra.items()}
        arrays = [found[field.name].cast(field.type) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _value(self, values: list[bytes | None]) -> pa.Array:
        kind = pa.binary() if self._options.value == "bytes" else pa.string()
        options = self._options
        raw = pa.array(values, pa.binary())
        return text_column(self._name, raw, kind, options.timestamps, options.malformed)

    def _extra(self, name: str) -> tuple[list[object], pa.DataType]:
        """Return a column of the message itself, and its type."""
        messages = self._messages
        if name == "timestamp":
            times = [message.timestamp()[1] for message in messages]
            return [t if t >= 0 else None for t in times], pa.timestamp("ms", "UTC")
        if name == "key":
            return [message.key() for message in messages], pa.binary()
        if name == "topic":
            return [message.topic() for message in messages], pa.string()
        if name == "partition":
            return [message.partition() for message in messages], pa.int32()
        return [message.offset() for message in messages], pa.int64()
