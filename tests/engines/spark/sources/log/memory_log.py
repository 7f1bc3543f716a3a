"""A log in memory, for tests of what all logs have in common."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql.types import LongType, StructField, StructType, TimestampType

from slackwater.engines.spark.sources.base import Ints
from slackwater.engines.spark.sources.log.kafka_log import KafkaPartition
from slackwater.engines.spark.sources.log.log import (
    LogOptions,
    LogRows,
    Position,
    Positions,
    ServerAway,
    Stream,
    data_gone,
)
from slackwater.engines.spark.sources.log.reader import LogReader

SCHEMA = StructType([StructField("number", LongType()), StructField("at", TimestampType())])


@dataclass(frozen=True)
class MemoryRow:
    number: int
    event_us: int | None = 0
    arrival_us: int = 0


@dataclass
class MemoryLog:
    """A position is the number of rows before it."""

    streams: dict[str, list[MemoryRow]] = field(default_factory=dict)
    trimmed: dict[str, int] = field(default_factory=dict)  # rows that are gone, from the front
    is_away: bool = False
    tells_arrivals: bool = True

    def look(self) -> dict[str, Stream]:
        if self.is_away:
            raise ServerAway("test")
        return {
            name: KafkaPartition(self.trimmed.get(name, 0), len(rows))
            for name, rows in self.streams.items()
        }

    def ordinal(self, position: Position) -> int:
        return int(position)

    def arrived_us(self, position: Position) -> int | None:
        return None

    def advance(self, name: str, position: Position, rows: int) -> Position:
        return position + rows

    def read(self, name: str, first: Position, last: Position) -> Iterator[LogRows]:
        if first < self.trimmed.get(name, 0):
            raise data_gone(name, "rows")
        yield MemoryRows(self.streams[name][first:last], self.tells_arrivals)

    def newest(self, column: str, after: Positions) -> Iterator[pa.Array]:
        if self.is_away:
            raise ServerAway("test")
        for name, position in after.items():
            if rows := self.streams.get(name, [])[position:]:
                yield MemoryRows(rows[-1:], self.tells_arrivals).column(column)


class MemoryRows:
    def __init__(self, rows: list[MemoryRow], tells_arrivals: bool) -> None:
        self._rows = rows
        self._tells_arrivals = tells_arrivals

    @property
    def numbers(self) -> Ints:
        return np.array([row.number for row in self._rows], np.int64)

    @property
    def arrival_us(self) -> Ints | None:
        if not self._tells_arrivals:
            return None
        return np.array([row.arrival_us for row in self._rows], np.int64)

    def column(self, name: str) -> pa.Array:
        return self.batch(None).column(name)

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        rows = self._rows if kept is None else [self._rows[place] for place in kept]
        times = pa.array([row.event_us for row in rows], pa.timestamp("us", "UTC"))
        return pa.RecordBatch.from_arrays(
            [pa.array([row.number for row in rows], pa.int64()), times], names=["number", "at"]
        )


@dataclass(frozen=True, kw_only=True)
class MemoryOptions(LogOptions):
    @property
    def server(self) -> str:
        return "the memory"


class MemoryReader(LogReader):
    """A reader of one log that stays where it is when the reader is pickled."""

    logs: dict[str, MemoryLog] = {}  # noqa: RUF012

    def _open(self, schema: pa.Schema) -> MemoryLog:
        return self.logs["here"]
