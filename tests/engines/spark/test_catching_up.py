"""History in many files, read a file a batch, under windows that are long."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.fleet import Fleet
from tests.waiting import eventually

pytestmark = pytest.mark.spark

FILES = 12
LIMIT_S = 240.0


def test_all_that_is_there_is_read_before_the_window_s_end(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    """A query that waits for its hour to end would take two and a half to read the next file."""
    folder = tmp_path / "history"
    folder.mkdir()
    for number in range(FILES):
        time = f"2026-01-01T00:{5 * number:02d}:00Z"
        (folder / f"{number}.json").write_text(json.dumps({"time": time}))
    fleet = make_fleet("klink")
    rows = spark.readStream.schema("time timestamp").option("maxFilesPerTrigger", 1)
    marked = rows.json(str(folder)).withWatermark("time", "10 seconds")
    counts = marked.groupBy(F.window("time", "1 hour")).count()
    query = fleet.start(counts.writeStream.format("memory"), name="history")
    reading = threading.Thread(target=query.processAllAvailable, daemon=True)
    reading.start()
    eventually(lambda: not reading.is_alive(), LIMIT_S)
    assert fleet.status().queries[0].rows == FILES
