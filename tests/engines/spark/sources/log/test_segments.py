"""The log between queries: every row once, whatever runs again."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from pyspark.sql.types import LongType, StructField, StructType

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.log.log import DataGone
from slackwater.engines.spark.sources.log.segment_log import (
    SegmentFile,
    SegmentOptions,
    append,
    claim,
    segments_from,
    trim,
)
from slackwater.engines.spark.sources.query_log import SegmentReader, read_log, write_log
from tests.engines.spark.reading import read

SCHEMA = StructType([StructField("number", LongType())])
ARROW = pa.schema([("number", pa.int64())])


def segments(folder: Path) -> list[SegmentFile]:
    return list(segments_from(folder, 0))


def fill(folder: Path, sizes: list[int]) -> int:
    """Segments of these sizes, with rows numbered through; how many rows."""
    folder.mkdir(parents=True, exist_ok=True)
    before = 0
    for batch, size in enumerate(sizes):
        rows = pa.table({"number": range(before, before + size)}, schema=ARROW)
        append(folder, batch, rows)
        before += size
    return before


def reader(*folders: Path, instance: str = "0/1") -> SegmentReader:
    names = tuple(str(folder) for folder in folders)
    return SegmentReader(SegmentOptions(folders=names, instance=instance), SCHEMA)


@given(
    sizes=st.lists(st.integers(0, 7), min_size=1, max_size=8),
    limit=st.integers(1, 9),
    count=st.integers(1, 3),
)
@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_instances_together_read_every_row_once_in_any_batches(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], limit: int, count: int
) -> None:
    folder = tmp_path_factory.mktemp("log")
    total = fill(folder, sizes)
    found = []
    for number in range(count):
        mine = reader(folder, instance=f"{number}/{count}")
        start = mine.initialOffset()
        while (end := mine.latestOffset(start, ReadMaxRows(limit))) != start:
            end = json.loads(json.dumps(end))
            rows = read(mine, start, end)  # type: ignore[arg-type]
            assert 0 < len(rows) <= limit
            assert end["n"] - start["n"] == len(rows)
            found += [row["number"] for row in rows]
            start = end
    assert sorted(found) == list(range(total))


def test_a_micro_batch_that_runs_again_changes_nothing(tmp_path: Path) -> None:
    fill(tmp_path, [3, 2])
    again = pa.table({"number": [7, 8, 9]}, schema=ARROW)
    assert not append(tmp_path, 1, again)
    assert [segment.rows for segment in segments(tmp_path)] == [3, 2]


def test_old_segments_are_removed_and_who_missed_them_is_told(tmp_path: Path) -> None:
    fill(tmp_path, [3, 2, 4])
    behind, ahead = reader(tmp_path), reader(tmp_path)
    start = behind.initialOffset()
    end = ahead.latestOffset(start, ReadMaxRows(5))
    for segment in segments(tmp_path):
        os.utime(segment.path, (0, 0))
    assert trim(tmp_path, keep_s=60) == 2
    assert [(segment.first, segment.rows) for segment in segments(tmp_path)] == [(5, 4)]
    last = ahead.latestOffset(end, ReadAllAvailable())
    assert [row["number"] for row in read(ahead, end, last)] == [5, 6, 7, 8]  # type: ignore[arg-type]
    with pytest.raises(DataGone):
        behind.latestOffset(start, ReadAllAvailable())


def test_what_was_left_half_written_is_not_read(tmp_path: Path) -> None:
    fill(tmp_path, [3])
    (tmp_path / ".000000001.new").write_bytes(b"half")
    assert [segment.batch for segment in segments(tmp_path)] == [0]


def test_a_log_has_one_writer(tmp_path: Path) -> None:
    claim(tmp_path, "one")
    claim(tmp_path, "one")
    with pytest.raises(UsageError, match="another checkpoint"):
        claim(tmp_path, "two")


def test_two_logs_are_read_together(tmp_path: Path) -> None:
    fill(tmp_path / "a", [3])
    fill(tmp_path / "b", [2, 2])
    both = reader(tmp_path / "a", tmp_path / "b")
    start = both.initialOffset()
    end = both.latestOffset(start, ReadAllAvailable())
    assert len(read(both, start, end)) == 7  # type: ignore[arg-type]


def test_segments_that_have_gone_are_told(tmp_path: Path) -> None:
    fill(tmp_path, [3, 2])
    mine = reader(tmp_path)
    start = mine.initialOffset()
    end = mine.latestOffset(start, ReadAllAvailable())
    segments(tmp_path)[1].path.unlink()
    with pytest.raises(SlackwaterError):
        read(mine, start, end)  # type: ignore[arg-type]


@pytest.mark.parametrize("instance", ["2/2", "one", "1", "-1/2"])
def test_an_instance_that_is_none_is_refused(instance: str) -> None:
    with pytest.raises(UsageError, match="instance is"):
        SegmentOptions(folders=("a",), instance=instance)


@pytest.mark.spark
def test_a_query_reads_what_another_writes_also_when_its_batch_ran_twice(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The commit of a micro-batch is lost, as by kill -9 at the worst moment."""
    data = tmp_path / "in"
    for number in range(3):
        spark.range(100 * number, 100 * number + 100).coalesce(1).write.mode("append").parquet(
            str(data)
        )
    rows = spark.readStream.schema("id long").option("maxFilesPerTrigger", 1).parquet(str(data))
    log, checkpoint = tmp_path / "log", tmp_path / "checkpoint"
    for _ in range(2):
        writer = write_log(rows, log).option("checkpointLocation", str(checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()
        newest = max((checkpoint / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
        newest.unlink()
    read_log(spark, log).writeStream.format("memory").queryName("between").trigger(
        availableNow=True
    ).start().awaitTermination()
    found = sorted(row["id"] for row in spark.table("between").collect())
    assert found == list(range(300))


def test_a_log_tells_when_it_grew_not_when_it_was_looked_at(tmp_path: Path) -> None:
    fill(tmp_path, [5, 5])
    newest = segments(tmp_path)[-1].path
    at_s = newest.stat().st_mtime - 3
    os.utime(newest, (at_s, at_s))
    offset = reader(tmp_path).reportLatestOffset()
    assert offset is not None
    assert (offset["n"], offset["t"]) == (10, pytest.approx(1e6 * at_s, abs=10))
    os.utime(newest, (0, 0))
    offset = reader(tmp_path).reportLatestOffset()
    assert offset is not None
    assert offset["t"] > 1e6 * at_s - 20e6, "a log that stands still has no rate"
