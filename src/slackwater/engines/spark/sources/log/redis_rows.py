"""Entries of Redis Streams become columns."""

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.engines.spark.sources.log.log import Ints
from slackwater.engines.spark.sources.log.redis_options import ARRIVAL, RedisOptions
from slackwater.engines.spark.sources.log.texts import text_column

Entry = tuple[bytes, Sequence[bytes]]  # its id; its fields and their values in turn
FieldValues = Callable[[bytes], list[bytes | None]]  # of one field, an entry each

_SEQUENCE_BITS = 20  # of a row's number; Redis numbers the entries of one millisecond from 0


class RedisRows:
    """Entries of one stream."""

    def __init__(
        self, name: str, entries: list[Entry], options: RedisOptions, schema: pa.Schema
    ) -> None:
        self._name = name
        self._entries = entries
        self._options = options
        self._schema = schema
        self._ids = _ids(entries)

    @property
    def numbers(self) -> Ints:
        return (self._ids[:, 0] << _SEQUENCE_BITS) + self._ids[:, 1]

    @property
    def arrival_us(self) -> Ints:
        return self._ids[:, 0] * 1000

    def column(self, name: str) -> pa.Array:
        return self._column(self._schema.field(name), _values(self._entries), self.arrival_us)

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        entries, arrival_us = self._entries, self.arrival_us
        if kept is not None:
            entries, arrival_us = [entries[place] for place in kept.tolist()], arrival_us[kept]
        values = _values(entries)
        columns = [self._column(field, values, arrival_us) for field in self._schema]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    def _column(self, field: pa.Field, values: FieldValues, arrival_us: Ints) -> pa.Array:
        if field.name == ARRIVAL and self._options.arrival:
            return pa.array(arrival_us).cast(field.type)
        texts = pa.array(values(field.name.encode()), pa.binary())
        where = f"{self._name}, field {field.name}"
        return text_column(
            where, texts, field.type, self._options.timestamps, self._options.malformed
        )


def _ids(entries: list[Entry]) -> Ints:
    """Milliseconds and sequence numbers, one row an entry."""
    parts = b"-".join([entry[0] for entry in entries]).split(b"-")
    # Users may give ids of their own, up to the largest unsigned number.
    return np.array(parts, np.bytes_).astype(np.uint64).astype(np.int64).reshape(-1, 2)


def _values(entries: list[Entry]) -> FieldValues:
    """A function that gives the values of one field; most often all entries have the same fields.

    >>> entries = [(b"1-0", [b"a", b"x"]), (b"2-0", [b"a", b"y", b"b", b"z"])]
    >>> _values(entries)(b"b")
    [None, b'z']
    >>> _values(entries[:1])(b"a")
    [b'x']
    """
    names = entries[0][1][::2] if entries else []
    if all(entry[1][::2] == names for entry in entries):
        places = {field: 2 * number + 1 for number, field in enumerate(names)}

        def same(field: bytes) -> list[bytes | None]:
            place = places.get(field)
            if place is None:
                return [None] * len(entries)
            return [entry[1][place] for entry in entries]

        return same
    lookups = [dict(zip(entry[1][::2], entry[1][1::2], strict=True)) for entry in entries]
    return lambda field: [lookup.get(field) for lookup in lookups]
