"""Events in files, one file a batch, and what a windowed count of them must give."""

import os
import re
from collections import Counter
from pathlib import Path

import pyarrow.parquet
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

START_S = 1_700_000_000
EACH = 40  # rows of a file, over two seconds of event time
WINDOW_S = 2


def write_files(folder: Path, files: int) -> Path:
    """Write them, each older than the next: Spark reads them in that order."""
    folder.mkdir()
    for number in range(files):
        rows = [f'{{"ms": {ms}, "key": {key}}}' for ms, key in rows_of(number)]
        path = folder / f"{number:04}.json"
        path.write_text("\n".join(rows) + "\n")
        os.utime(path, 2 * (START_S + number,))
    return folder


def rows_of(number: int) -> list[tuple[int, int]]:
    """Return the rows of one file: event time and key."""
    return [(_ms(number, row), row % 4) for row in range(EACH)]


def counts(spark: SparkSession, folder: str | Path, files_a_batch: int | None = 1) -> DataFrame:
    """Count the events of each window and key, from the files."""
    reader = spark.readStream.schema("ms long, key long")
    if files_a_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files_a_batch)
    return counted(reader.json(str(folder)))


def counted(rows: DataFrame) -> DataFrame:
    """Count the events of each window and key."""
    events = rows.withColumn("time", F.timestamp_millis("ms"))
    windows = F.window("time", f"{WINDOW_S} seconds")
    counted = events.withWatermark("time", "0 seconds").groupBy(windows, "key").count()
    return counted.select(F.unix_millis("window.end").alias("end"), "key", "count")


def truth(files: int) -> Counter[tuple[int, int, int]]:
    """Return the rows of all windows that surely close: all but the last."""
    end_ms = 1000 * WINDOW_S
    found: Counter[tuple[int, int]] = Counter()
    for number in range(files):
        for ms, key in rows_of(number):
            found[ms - ms % end_ms + end_ms, key] += 1
    last = max(end for end, _ in found)
    return Counter((end, key, n) for (end, key), n in found.items() if end != last)


def committed_rows(folder: Path) -> Counter[tuple[int, ...]]:
    """Return the rows of the files that Spark's file sink has committed there."""
    logs = (log.read_text() for log in folder.glob("_spark_metadata/[0-9]*"))
    rows: Counter[tuple[int, ...]] = Counter()
    for name in {name for log in logs for name in re.findall(r"part-[^/]+\.parquet", log)}:
        table = pyarrow.parquet.read_table(folder / name)
        rows.update(tuple(row.values()) for row in table.to_pylist())
    return rows


def _ms(number: int, row: int) -> int:
    return 1000 * START_S + 2000 * number + row * 2000 // EACH
