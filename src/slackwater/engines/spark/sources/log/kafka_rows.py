"""Messages of Kafka become columns."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import pyarrow as pa
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Message
from numpy.typing import NDArray

from slackwater.engines.spark.sources.log.jsons import JsonColumns
from slackwater.engines.spark.sources.log.kafka_options import KafkaOptions
from slackwater.engines.spark.sources.log.log import Ints
from slackwater.engines.spark.sources.log.texts import text_column


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
        """The broker's time, or the producer's: a reader knows between which times rows came."""
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
        """Of all messages: JSON has to be parsed before a row's event time is known."""
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
        """A column of the message itself, and its type."""
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
