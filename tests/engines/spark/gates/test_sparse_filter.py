"""A filter that keeps one row in a thousand, under a raised watermark and on stock Spark.

The optimizer moves the filter below the watermark, so that Spark works its watermark out from the
rows that are left; a raised one follows the stream, as the query was written.
"""

import json
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.spark import Fleet
from tests.waiting import eventually

pytestmark = pytest.mark.spark

KEEPS = "number % 1000 = 0"
BEGAN_S = int(time.time()) - 1000


class Stream:
    """Files of a thousand rows, the first of which is kept."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.folder = folder
        self.newest_s = 0.0
        self._files = 0

    def add(self, kept_s: float, until_s: float) -> None:
        """Write a row that is kept and 999 others, which end so many seconds after the beginning.

        Parameters
        ----------
        kept_s
            Of the one that is kept, counted as well from the beginning.
        """
        times = [kept_s, *(until_s - n / 1000 for n in range(999))]
        lines = [
            json.dumps({"number": n, "at": datetime.fromtimestamp(BEGAN_S + at, UTC).isoformat()})
            for n, at in enumerate(times)
        ]
        self._files += 1
        hidden = self.folder / f".{self._files}"  # Spark must not see it half written
        hidden.write_text("\n".join(lines))
        hidden.rename(self.folder / f"{self._files}.json")
        self.newest_s = max(self.newest_s, BEGAN_S + max(times))

    def read(self, spark: SparkSession) -> DataFrame:
        return spark.readStream.schema("number long, at timestamp").json(str(self.folder))


def windows(rows: DataFrame) -> DataStreamWriter:
    return rows.groupBy(F.window("at", "1 second")).count().writeStream.format("memory")


def found(spark: SparkSession, table: str) -> dict[int, int]:
    """Rows by the beginning of their window."""
    rows = spark.sql(f"select unix_timestamp(window.start) s, count from {table}").collect()
    return {row.s - BEGAN_S: row["count"] for row in rows}


def test_stock_spark_goes_by_the_rows_that_are_left(spark: SparkSession, tmp_path: Path) -> None:
    stream = Stream(tmp_path / "in")
    rows = stream.read(spark).withWatermark("at", "2 seconds").where(KEEPS)
    query = windows(rows).queryName("stock").start()
    try:
        stream.add(kept_s=0.0, until_s=10.0)
        query.processAllAvailable()
        assert found(spark, "stock") == {}, "it waits for the next row that is kept"
        stream.add(kept_s=0.5, until_s=10.0)  # 9.5 s behind the stream
        query.processAllAvailable()
        stream.add(kept_s=20.0, until_s=20.0)
        eventually(lambda: found(spark, "stock") == {0: 2}, 60)
        dropped = [
            o.numRowsDroppedByWatermark for p in query.recentProgress for o in p.stateOperators
        ]
        assert sum(dropped) == 0
    finally:
        query.stop()


def test_a_raised_watermark_goes_by_the_stream(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    stream = Stream(tmp_path / "in")
    stream.add(kept_s=0.0, until_s=10.0)
    rows = stream.read(spark).withWatermark("at", "2 seconds").where(KEEPS)
    fleet = make_fleet("fcfs")
    fleet.start(windows(rows), name="raised", frontier=lambda query: stream.newest_s)

    def dropped() -> int | None:
        return fleet.status().queries[0].rows_dropped_by_watermark

    assert fleet.status().queries[0].why_two_batches is None
    eventually(lambda: found(spark, "raised") == {0: 1}, 60)  # nothing more is waited for
    stream.add(kept_s=0.5, until_s=10.0)  # 9.5 s behind the stream
    eventually(lambda: dropped() == 1, 60)
    stream.add(kept_s=8.5, until_s=10.0)  # within its delay
    stream.add(kept_s=20.0, until_s=20.0)
    eventually(lambda: found(spark, "raised") == {0: 1, 8: 1}, 60)
    assert dropped() == 1


def test_below_the_watermark_a_filter_leaves_it_to_spark(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    stream = Stream(tmp_path / "in")
    stream.add(kept_s=0.0, until_s=10.0)
    rows = stream.read(spark).where(KEEPS).withWatermark("at", "2 seconds")
    fleet = make_fleet("fcfs")
    fleet.start(windows(rows), name="below", frontier=lambda query: stream.newest_s)
    status = fleet.status().queries[0]
    assert status.why_two_batches == "rows are filtered before the watermark"
    eventually(lambda: fleet.status().queries[0].rows == 1000, 60)
    stream.add(kept_s=0.5, until_s=10.0)
    eventually(lambda: fleet.status().queries[0].rows == 2000, 60)
    stream.add(kept_s=20.0, until_s=20.0)
    eventually(lambda: found(spark, "below") == {0: 2}, 60)
