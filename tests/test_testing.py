"""The public checks of sources: a source that keeps everything passes, and each slip is seen."""

import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import IntegerType, LongType, StructField, StructType

from slackwater.testing import check_source

Offset = dict[str, int]


class Span(InputPartition):
    def __init__(self, start: int, end: int) -> None:
        self.start, self.end = start, end


class Counting(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Hands out the numbers up to what has arrived."""

    arrived = 0

    def __init__(self) -> None:
        self.target: int | None = None

    def initialOffset(self) -> Offset:
        return {"n": 0}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]
        end = self.arrived if self.target is None else self.target
        return {"n": max(start["n"], min(end, start["n"] + getattr(limit, "max_rows", end)))}

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.arrived

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [Span(start["n"], end["n"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        assert isinstance(partition, Span)
        yield from ((number,) for number in range(partition.start, partition.end))

    def commit(self, end: Offset) -> None: ...

    def stop(self) -> None: ...


class NoLimit(Counting):
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]
        return {"n": self.arrived}


class Forgetful(Counting):
    """Its second reader does not know what the first one did."""

    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1
        self.mine = self.made

    def read(self, partition: InputPartition) -> Iterator[tuple[int]]:
        yield from ((number * self.mine,) for (number,) in super().read(partition))


class Repeating(Counting):
    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        return [Span(start["n"], end["n"] - 1), Span(0, min(1, start["n"]))]


class Endless(Counting):
    def prepareForTriggerAvailableNow(self) -> None:
        pass


class Stuck(Counting):
    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # type: ignore[override]
        return start


class NoJson(Counting):
    def initialOffset(self) -> Any:
        return 0


class OldSignature(Counting):
    def latestOffset(self) -> Offset:  # type: ignore[override]
        return {"n": self.arrived}


class Connected(Counting):
    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()


class Handing(Counting):
    """Gives its partitions something that cannot be sent."""

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        found = Span(start["n"], end["n"])
        found.lock = threading.Lock()  # type: ignore[attr-defined]
        return [found]


class Arrow(Counting):
    """Hands out Arrow batches of 32-bit numbers."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        numbers = [number for (number,) in super().read(partition)]
        yield pa.RecordBatch.from_pydict({"number": pa.array(numbers, pa.int32())})


class Wide(Counting):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield from ((number, "more") for (number,) in super().read(partition))


class Texts(Counting):
    def read(self, partition: InputPartition) -> Iterator[Any]:
        yield from ((str(number),) for (number,) in super().read(partition))


SCHEMA = StructType([StructField("number", LongType())])


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (Arrow, "read gives the column 'number' as int32, the schema has the column 'number' as"),
        (Wide, "a row does not fit the schema"),
        (Texts, "a row does not fit the schema: .*LongType"),
    ],
)
def test_types_that_differ_from_the_schema_are_seen(reader: type[Counting], message: str) -> None:
    check_source(reader, arriving(reader))
    with pytest.raises(AssertionError, match=message) as caught:
        check_source(reader, arriving(reader), SCHEMA)
    assert "\n" not in str(caught.value)


def test_types_that_are_those_of_the_schema_pass() -> None:
    check_source(Counting, arriving(Counting), SCHEMA)
    narrow = StructType([StructField("number", IntegerType())])
    check_source(Arrow, arriving(Arrow), narrow)


def arriving(reader: type[Counting]) -> Callable[[int], None]:
    reader.arrived = 0

    def add_rows(count: int) -> None:
        reader.arrived += count

    return add_rows


def test_a_source_that_keeps_everything_passes() -> None:
    check_source(Counting, arriving(Counting))


@pytest.mark.parametrize(
    ("reader", "message"),
    [
        (NoLimit, "its limit is 7"),
        (Forgetful, "a replay from the same offsets has other rows"),
        (Repeating, "small batches have other rows than one large batch"),
        (Endless, "rows that came after it began"),
        (Stuck, "none of them is handed out"),
        (NoJson, "an offset is a dict"),
        (OldSignature, r"latestOffset takes \(\) -> .*, not \(start, limit\)"),
        (Connected, "the reader cannot be pickled .*: open files and connections in read"),
        (Handing, "a partition cannot be pickled"),
    ],
)
def test_a_slip_is_seen(reader: type[Counting], message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        check_source(reader, arriving(reader))
