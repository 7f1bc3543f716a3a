"""Declarative pipelines: a flow is a run, which a source gate holds before it reads anything."""

import sys
from pathlib import Path

import pytest

from slackwater.engines.spark.session.versions import SPARK, version_of
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskStatus, Control, Controlled, QueryEntry, Status
from tests.engines.spark.connect_processes import SPARK_HOME, ControllerCommand, Process
from tests.versions.files import committed_rows, truth, write_files
from tests.versions.test_contract import NEVER
from tests.waiting import eventually

pytest.importorskip("grpc", reason="pipelines need grpcio: pip install 'slackwater[connect]'")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(version_of(SPARK) < (4, 1), reason="pipelines are from Spark 4.1 on"),
]

FILES = 8
FLOW = "spark_catalog.default.counted"
SPEC = """
name: held
catalog: spark_catalog
database: default
storage: file://{folder}/storage
configuration:
  spark.sql.shuffle.partitions: "2"
libraries:
  - glob:
      include: definitions/**
"""
DEFINITION = """
from pyspark import pipelines
from pyspark.sql import SparkSession
from slackwater.spark import ConnectFleet
from tests.versions.files import counts

spark = SparkSession.active()
fleet = ConnectFleet(spark, "flows")
held = fleet.gate(counts(spark, "{folder}/in"), "{flow}", max_wait=600)

@pipelines.table
def counted():
    return held
"""


class Pipeline(Process):
    """``spark-pipelines run``, which starts a Connect server of its own."""

    def __init__(self, folder: Path) -> None:
        warehouse = f"spark.sql.warehouse.dir={folder / 'warehouse'}"
        places = ("--conf", warehouse, "--conf", "spark.ui.enabled=false")
        super().__init__(
            folder,
            "pipeline",
            *(str(SPARK_HOME / "bin" / "spark-pipelines"), *places),
            *("run", "--spec", str(folder / "pipeline.yml")),
            SPARK_HOME=str(SPARK_HOME),
            SPARK_LOCAL_IP="127.0.0.1",
            PYSPARK_PYTHON=sys.executable,
        )


def test_a_flow_waits_for_its_grant(tmp_path: Path) -> None:
    write_files(tmp_path / "in", FILES)
    (tmp_path / "pipeline.yml").write_text(SPEC.format(folder=tmp_path))
    (tmp_path / "definitions").mkdir()
    text = DEFINITION.format(folder=tmp_path, flow=FLOW)
    (tmp_path / "definitions" / "counted.py").write_text(text)
    with (
        ControllerCommand(tmp_path, "flows", NEVER) as controller,
        Pipeline(tmp_path) as pipeline,
    ):

        def flow() -> QueryEntry | None:
            queries = ask(controller.socket, AskStatus(), Status).queries
            return queries[0] if queries else None

        def waits() -> bool:
            found = flow()
            return pipeline.is_running() and found is not None and found.phase == "waiting"

        eventually(waits, limit_s=120)
        assert not committed_rows(tmp_path / "warehouse" / "counted")
        found = flow()
        assert found is not None
        assert found.spec.name == FLOW
        assert len(found.spec.deadlines.windows) == 1
        ask(controller.socket, Control(action="off"), Controlled)
        # It ends by an error all the same, as with any Python source: SPARK-59135.
        eventually(lambda: "Run is COMPLETED" in pipeline.log(), limit_s=90)
    assert committed_rows(tmp_path / "warehouse" / "counted") == truth(FILES)
