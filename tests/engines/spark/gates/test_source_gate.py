"""The source gate where a query is a run that ends."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.fleet import Fleet
from tests.versions.files import EACH, counts, truth, write_files

pytestmark = pytest.mark.spark

FILES = 4


def test_a_run_is_granted_batch_by_batch(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And reads no more at once than its source's limit says."""
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path))
    source = write_files(tmp_path / "in", FILES)
    with Fleet(spark, "fcfs", gate="source", name="runs") as fleet:
        held = fleet.gate(counts(spark, source), "granted_run", max_wait=600)
        writer = held.writeStream.format("memory").queryName("granted_run")
        query = writer.trigger(availableNow=True).start()
        assert query.awaitTermination(120)
        rows = [each["numInputRows"] for each in query.recentProgress if each["numInputRows"]]
        assert rows == [EACH] * FILES
        assert len(fleet.explain(100)) >= FILES
    assert {tuple(row): 1 for row in spark.table("granted_run").collect()} == truth(FILES)
