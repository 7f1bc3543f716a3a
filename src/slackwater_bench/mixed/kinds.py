"""The kinds of queries in a mixed fleet: how each is written, and what its results must be.

All but one read Spark's rate source, whose rows lie a fixed time apart and count upwards: a window
of known length then holds a known number of rows with neighbouring values, wherever it lies.
"""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.clock import RealClock
from slackwater.engines.spark.sources.newest import observe_newest
from slackwater_bench.mixed.files import FILE_SCHEMA, ROWS_A_SECOND
from slackwater_bench.mixed.shape import DELAY_S, FRESH_S, RATE, SLEEP_S, in_proportion
from slackwater_bench.workloads.base import WindowGrid

DELAY = f"{DELAY_S:g} seconds"
SESSION_ROWS = 50
GAP = "100 milliseconds"
COLUMNS = ("rows", "low", "high", "first_us")  # of a window's result


@dataclass(frozen=True, kw_only=True)
class Kind(ABC):
    """One kind of query.

    A member writes :meth:`frame`, and :meth:`mistakes` for what is in its sink.
    """

    name: ClassVar[str]
    count: ClassVar[int]  # of a fleet of scale 1
    windowed: ClassVar[bool] = True  # judged by latency; else by how old its newest row is
    mode: ClassVar[str] = "append"
    rows_a_second: ClassVar[int] = RATE
    target_s: ClassVar[float | None] = None  # how old its newest row may be
    trigger_s: ClassVar[float | None] = None  # an interval of its own

    @abstractmethod
    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        """Return the query; its inputs in ``folder`` if it has any."""

    @abstractmethod
    def mistakes(self, results: pa.Table) -> list[str]:
        """Say what is wrong with the rows of its sink."""

    def ends(self, first_s: float, last_s: float) -> set[int] | None:
        """Return the windows that must come, by their ends in microseconds; None: not known."""
        return None

    def writer(self, frame: DataFrame, folder: Path) -> DataStreamWriter:
        """Return the query with its sink."""
        return frame.writeStream.format("memory").outputMode(self.mode)

    def results(self, spark: SparkSession, query: str, folder: Path) -> pa.Table:
        """Return what is in its sink."""
        return spark.table(query).toArrow()


class _Windows(Kind):
    size_s: ClassVar[int]
    slide_s: ClassVar[int]

    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        marked = self.marked(self.rows(spark, folder))
        if not self.windowed:
            marked = observe_newest(marked, "timestamp")
        window = F.window("timestamp", f"{self.size_s} seconds", f"{self.slide_s} seconds")
        found = marked.groupBy(window).agg(*self.figures())
        return found.select(F.col("window.end").alias("window_end"), *COLUMNS)

    def marked(self, rows: DataFrame) -> DataFrame:
        """Return the input with its watermark."""
        return rows.withWatermark("timestamp", DELAY)

    def figures(self) -> list[Column]:
        """Return what a window's result says of its rows."""
        return figures()

    def rows(self, spark: SparkSession, folder: Path) -> DataFrame:
        """Return the input."""
        return rate(spark, self.rows_a_second)

    def ends(self, first_s: float, last_s: float) -> set[int]:
        grid = WindowGrid.of_seconds(self.size_s, self.slide_s, 0.0)
        return set(grid.ends(round(first_s * 1e6), round(last_s * 1e6)))

    def mistakes(self, results: pa.Table) -> list[str]:
        newest: dict[object, dict[str, int]] = {}
        doubled = 0
        for row in sorted(results.to_pylist(), key=lambda row: row["rows"]):
            doubled += self.mode == "append" and row["window_end"] in newest
            newest[row["window_end"]] = row
        ends = sorted(newest)  # type: ignore[type-var]
        # Its first windows may have begun before the source, its last in update mode go on.
        whole = ends[self.size_s // self.slide_s : None if self.mode == "append" else -1]
        wrong = [
            f"the window that ends at {end} has {newest[end]['rows']} rows"
            for end in whole
            if newest[end]["rows"] != self.size_s * self.rows_a_second
            or newest[end]["high"] - newest[end]["low"] + 1 != newest[end]["rows"]
        ]
        gaps = [
            f"no window between {one} and {other}"
            for one, other in pairwise(ends)
            if (other - one).total_seconds() != self.slide_s  # type: ignore[operator]
        ]
        return wrong + gaps + ([f"{doubled} windows came twice"] if doubled else [])


class TenSeconds(_Windows):
    name, count, size_s, slide_s = "windows of 10 s", 5, 10, 10


class Minutes(_Windows):
    name, count, size_s, slide_s = "windows of 1 min", 1, 60, 60


class Sliding(_Windows):
    name, count, size_s, slide_s = "1 min every 20 s", 3, 60, 20


class Files(_Windows):
    name, count, size_s, slide_s = "windows over files", 2, 10, 10
    rows_a_second = ROWS_A_SECOND

    def rows(self, spark: SparkSession, folder: Path) -> DataFrame:
        return spark.readStream.schema(FILE_SCHEMA).parquet(str(folder))


class Dashboards(_Windows):
    name, count, size_s, slide_s = "dashboards (update)", 3, 60, 60
    windowed = False
    mode = "update"
    target_s = FRESH_S


class Sessions(Kind):
    name, count = "session windows", 1

    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        marked = rate(spark).withWatermark("timestamp", DELAY)
        key = F.floor(F.col("value") / SESSION_ROWS).alias("key")
        found = marked.groupBy(F.session_window("timestamp", GAP), key).agg(*figures())
        return found.select(F.col("session_window.end").alias("window_end"), "key", *COLUMNS)

    def mistakes(self, results: pa.Table) -> list[str]:
        rows = results.to_pylist()
        wrong = [f"session {r['key']}: {r['rows']} rows" for r in rows if r["rows"] != SESSION_ROWS]
        return wrong + _uneven((row["key"] for row in rows), "sessions")


class Tables(Kind):
    name, count, windowed = "stateless to parquet", 4, False
    target_s = FRESH_S

    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        rows = observe_newest(rate(spark), "timestamp")
        return rows.select("value", (F.col("value") % 7).alias("part"))

    def writer(self, frame: DataFrame, folder: Path) -> DataStreamWriter:
        return frame.writeStream.format("parquet").option("path", str(folder / "table"))

    def results(self, spark: SparkSession, query: str, folder: Path) -> pa.Table:
        return spark.read.parquet(str(folder / "table")).select("value").toArrow()

    def mistakes(self, results: pa.Table) -> list[str]:
        return _uneven(results.column("value").to_pylist(), "values")


class Joins(Kind):
    name, count, windowed = "stream-stream join", 1, False
    target_s = FRESH_S

    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        left = rate(spark, 20).withWatermark("timestamp", DELAY)
        right = rate(spark, 20).select("value", F.col("timestamp").alias("seen"))
        right = right.withWatermark("seen", DELAY)
        near = F.expr(
            "seen BETWEEN timestamp - interval 20 seconds AND timestamp + interval 20 seconds"
        )
        found = left.join(right, (left.value == right.value) & near)
        found = found.select(left.value.alias("value"), "timestamp")
        return observe_newest(found, "timestamp")

    def mistakes(self, results: pa.Table) -> list[str]:
        return _uneven(results.column("value").to_pylist(), "pairs")


class SlowSinks(Kind):
    name, count, windowed = "slow sink", 1, False
    sleeps_s: ClassVar[float] = SLEEP_S
    # What comes while it sleeps waits until it has slept once more for it.
    target_s = 2 * SLEEP_S + FRESH_S

    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        return observe_newest(rate(spark, 10), "timestamp")

    def writer(self, frame: DataFrame, folder: Path) -> DataStreamWriter:
        def write(batch: DataFrame, number: int) -> None:
            batch.write.mode("overwrite").parquet(str(folder / "out" / str(number)))
            RealClock().sleep(self.sleeps_s)

        return frame.writeStream.foreachBatch(write)

    def results(self, spark: SparkSession, query: str, folder: Path) -> pa.Table:
        parts = sorted((folder / "out").glob("*/*.parquet"))
        return pa.concat_tables([pq.read_table(part, columns=["value"]) for part in parts])

    def mistakes(self, results: pa.Table) -> list[str]:
        return _uneven(results.column("value").to_pylist(), "values")


class Slow(_Windows):
    """A query that gets hardly anything."""

    name, count, size_s, slide_s = "slow source", 0, 60, 60
    rows_a_second = 1


class Silent(Kind):
    """A query whose input never comes."""

    name, count, windowed = "silent", 0, False

    def frame(self, spark: SparkSession, folder: Path) -> DataFrame:
        rows = spark.readStream.schema(FILE_SCHEMA).parquet(str(folder))
        marked = rows.withWatermark("timestamp", DELAY)
        return marked.groupBy(F.window("timestamp", "10 seconds")).agg(*figures())

    def mistakes(self, results: pa.Table) -> list[str]:
        return [f"{results.num_rows} rows out of nothing"] if results.num_rows else []


KINDS: tuple[type[Kind], ...] = (
    TenSeconds, Minutes, Sliding, Files, Sessions, Dashboards, Tables, Joins, SlowSinks,
)  # fmt: skip


def figures() -> list[Column]:
    """Return what a window's result says of its rows."""
    return [
        F.count("*").alias("rows"),
        F.min("value").alias("low"),
        F.max("value").alias("high"),
        F.min(F.unix_micros("timestamp")).alias("first_us"),
    ]


def rate(spark: SparkSession, rows_per_second: int = RATE) -> DataFrame:
    """Return a stream of Spark's rate source."""
    return spark.readStream.format("rate").option("rowsPerSecond", rows_per_second).load()


def fleet_of(
    scale: float, sinks: int | None, idle: int, *, busy: int | None = None, slow: int = 0
) -> dict[str, Kind]:
    """Return the queries of a fleet by name.

    Parameters
    ----------
    scale
        Times as many of each kind.
    sinks
        How many slow sinks instead.
    idle, slow
        Silent queries beside them, and such with hardly any input.
    busy
        How many of all kinds together, instead of a scale.

    >>> found = fleet_of(1, None, 2)
    >>> len(found), [name for name in found if "sink" in name or "silent" in name]
    (23, ['slow_sink_0', 'silent_0', 'silent_1'])
    >>> len(fleet_of(1, None, 180, busy=20))
    200
    """
    if busy is None:
        counts = {kind: round(kind.count * scale) for kind in KINDS}
    else:
        counts = dict(zip(KINDS, in_proportion(busy, [kind.count for kind in KINDS]), strict=True))
    if sinks is not None:
        counts[SlowSinks] = sinks
    return named(counts | {Slow: slow, Silent: idle})


def named(counts: Mapping[type[Kind], int]) -> dict[str, Kind]:
    """Return so many queries of each kind by name."""
    return {
        f"{_word(kind.name)}_{number}": kind()
        for kind, count in counts.items()
        for number in range(count)
    }


def _word(name: str) -> str:
    return "_".join("".join(c if c.isalnum() else " " for c in name).split())


def _uneven(found: Iterable[int], what: str) -> list[str]:
    """Say which numbers are missing or come twice.

    >>> _uneven([0, 1, 1, 3], "values")
    ['values: 1 missing, 1 too many']
    """
    times: dict[int, int] = defaultdict(int)
    for number in found:
        times[number] += 1
    missing = (max(times) - min(times) + 1 - len(times)) if times else 0
    surplus = sum(times.values()) - len(times)
    return [f"{what}: {missing} missing, {surplus} too many"] if missing or surplus else []
