"""A gated fleet from Delta to Delta and Iceberg, here and at S3: its driver is killed."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.checkpoints.files import hadoop_folder
from tests.lake import jars
from tests.lake.conftest import EVENTS
from tests.lake.s3_server import S3Server
from tests.lake.tables import Fleet, copy, rows
from tests.versions.files import truth
from tests.waiting import eventually

pytestmark = pytest.mark.lake

QUERIES = """
[queries.to_delta]
query = "tests.lake.pipeline:counted"
arguments = {{ source = "{root}/events" }}
format = "delta"
path = "{root}/delta"

[queries.to_iceberg]
query = "tests.lake.pipeline:counted"
arguments = {{ source = "{root}/events" }}
table = "lake.db.counts"

[queries.to_files]
query = "tests.lake.pipeline:counted"
arguments = {{ source = "{root}/events" }}
format = "parquet"
path = "{root}/files"
"""


@pytest.mark.parametrize("where", ["here", "at S3"])
def test_a_killed_driver_loses_and_doubles_nothing(
    spark: SparkSession, s3: S3Server, events: str, tmp_path: Path, where: str
) -> None:
    root = str(tmp_path / "lake") if where == "here" else f"s3a://{jars.BUCKET}/fleet"
    copy(spark, events, f"{root}/events")
    places = {
        "delta": f"{root}/delta",
        "iceberg": f"{root}/warehouse/db/counts",
        "parquet": f"{root}/files",
    }
    log = hadoop_folder(places["delta"], spark)

    def versions() -> int:
        return sum(name.endswith(".json") for name in log.changed_s("_delta_log"))

    def complete() -> bool:
        return all(rows(spark, kind, place) == truth(EVENTS) for kind, place in places.items())

    head = f"name = 'lake'\ncheckpoints = '{root}/checkpoints'"
    conf = jars.settings(s3.address, f"{root}/warehouse")
    with Fleet(tmp_path, head, conf, QUERIES.format(root=root)) as fleet:
        fleet.start()
        eventually(lambda: fleet.runs() and versions() >= 2, limit_s=120, pause_s=0.1)
        fleet.kill()
        assert not complete(), "killed too late to show anything"
        fleet.start()
        eventually(lambda: fleet.runs() and complete(), limit_s=150, pause_s=0.5)
    if where == "at S3":
        assert not [path.name for path in tmp_path.rglob("*") if path.name.startswith("s3a")]
        assert not (tmp_path / "checkpoints").exists()
