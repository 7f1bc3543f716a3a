"""A source of your own: the lines of a text file that grows.

An offset is ``{"n": lines before it, "byte": where the next one begins}``.

``spark.dataSource.register(GrowingFile)`` makes Spark know it, and
``spark.readStream.format("growing-file").load(PATH)`` reads it.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

Offset = dict[str, int]


class GrowingFile(DataSource):
    """Name the source for Spark."""

    @classmethod
    def name(cls) -> str:
        return "growing-file"

    def schema(self) -> str:
        return "line string"

    def streamReader(self, schema: StructType) -> "GrowingFileReader":
        return GrowingFileReader(self.options["path"])


@dataclass
class Span(InputPartition):
    """Some lines of the file."""

    byte: int
    lines: int


class GrowingFileReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plan micro-batches on the driver and read them on the executors."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.target: Offset | None = None  # what an available-now run must not pass

    def initialOffset(self) -> Offset:
        return {"n": 0, "byte": 0}

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        most = getattr(limit, "max_rows", None)
        if self.target is not None:
            left = max(0, self.target["n"] - start["n"])
            most = left if most is None else min(most, left)
        return self._ahead(start, most)

    def prepareForTriggerAvailableNow(self) -> None:
        self.target = self.reportLatestOffset()

    def reportLatestOffset(self) -> Offset:
        return self._ahead(self.initialOffset(), None)

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:
        return [Span(start["byte"], end["n"] - start["n"])]

    def read(self, partition: InputPartition) -> Iterator[tuple[str]]:
        assert isinstance(partition, Span)
        for line in islice(self._lines(partition.byte), partition.lines):
            yield (line.decode().rstrip("\n"),)

    def commit(self, end: Offset) -> None: ...

    def stop(self) -> None: ...

    def _ahead(self, start: Offset, most: int | None) -> Offset:
        lines = list(islice(self._lines(start["byte"]), most))
        return {"n": start["n"] + len(lines), "byte": start["byte"] + sum(map(len, lines))}

    def _lines(self, byte: int) -> Iterator[bytes]:
        with open(self.path, "rb") as file:
            file.seek(byte)
            yield from (line for line in file if line.endswith(b"\n"))  # whole ones only
