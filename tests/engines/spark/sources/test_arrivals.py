"""What tells of new files, on the file systems of a real Spark."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.core.clock import RealClock
from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.sources.arrivals import ArrivalsFinder
from tests.waiting import eventually

pytestmark = pytest.mark.spark

MOUNT = "fs.viewfs.mounttable.there.link./in"


def test_a_file_system_with_an_address_shows_what_has_come(
    spark: SparkSession, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    spark.sparkContext._jsc.hadoopConfiguration().set(MOUNT, folder.as_uri())
    rows = spark.readStream.schema("n long").json("viewfs://there/in")
    query = rows.writeStream.format("noop").start()
    try:
        execution = execution_of(query._jsq)
        eventually(lambda: execution.sources() is not None and query.lastProgress is not None)
        (source,) = ArrivalsFinder(RealClock()).find(execution)
        (before,) = source.mark()
        assert before[0] == "viewfs://there/in"
        (folder / "1.json").write_text('{"n": 1}')
        eventually(lambda: source.mark() != frozenset({before}))
    finally:
        query.stop()
