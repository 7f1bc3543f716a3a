"""The same fleet file on a standalone cluster, by its master URL alone, or by ``spark-submit``."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.fleet_process import FleetProcess, SubmittedFleet
from tests.packed_environment import PYTHON, pack_environment
from tests.spark_cluster import Cluster, spark_submit
from tests.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.cluster]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster(tmp_path)
    yield running
    running.close()


def test_a_lost_worker_changes_no_result(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    folder = tmp_path / "fleet"
    folder.mkdir()
    fleet = FleetProcess(folder, policy="fcfs", master=cluster.url)
    fleet.start()
    try:
        eventually(lambda: fleet.commits() >= 4, limit_s=150)
        assert fleet.missing(spark) > 0
        cluster.kill_worker()
        eventually(lambda: fleet.missing(spark) == 0, limit_s=250, pause_s=1)
        assert fleet.interrupt() == 0, fleet.log()
    finally:
        if fleet.process is not None and fleet.process.poll() is None:
            fleet.kill()
    assert fleet.mistakes(spark) == []


def test_a_packed_environment_runs_on_executors(
    spark: SparkSession, cluster: Cluster, tmp_path: Path
) -> None:
    """As docs/clusters.md says: nothing is installed on the workers."""
    folder = tmp_path / "fleet"
    folder.mkdir()
    archive = pack_environment(folder)
    fleet = SubmittedFleet(folder, cluster.url, archive)
    fleet.start()
    try:
        eventually(lambda: cluster.runs(PYTHON) or fleet.is_over(), limit_s=150)
        eventually(lambda: fleet.missing(spark) == 0 or fleet.is_over(), limit_s=150, pause_s=1)
        assert not fleet.is_over(), fleet.log()
        assert fleet.interrupt() == 0, fleet.log()
    finally:
        if fleet.process is not None and not fleet.is_over():
            fleet.kill()
    assert fleet.mistakes(spark) == []


def test_a_standalone_cluster_refuses_python_drivers(cluster: Cluster, tmp_path: Path) -> None:
    """Why docs/clusters.md names YARN and Kubernetes for cluster deploy mode."""
    (tmp_path / "job.py").write_text("print('ran')\n")
    where = ("--master", cluster.url, "--deploy-mode", "cluster")
    command = spark_submit(*where, str(tmp_path / "job.py"))
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode != 0
    assert "not supported for python applications on standalone clusters" in done.stderr
