"""Nothing lost, nothing doubled: the whole driver killed in mid-run and started again."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.fleet_process import FleetProcess
from tests.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]  # two starts of Spark


@pytest.mark.parametrize(
    ("policy", "gate"),
    [("spark", "auto"), ("fcfs", "clock"), ("round-robin", "source"), ("round-robin", "clock")],
)
def test_results_equal_ground_truth_after_kill_9(
    spark: SparkSession, tmp_path: Path, policy: str, gate: str
) -> None:
    fleet = FleetProcess(tmp_path, policy=policy, gate=gate)
    fleet.start()
    try:
        eventually(lambda: fleet.commits() >= 6, limit_s=200)
        fleet.kill()
        before = fleet.commits()
        assert fleet.missing(spark) > 0, "killed too late to show anything"
        fleet.start()
        eventually(lambda: fleet.missing(spark) == 0, limit_s=300, pause_s=1)
        assert fleet.commits() > before
        assert fleet.interrupt() == 0, fleet.log()
    finally:
        if fleet.process is not None and fleet.process.poll() is None:
            fleet.kill()
    assert fleet.mistakes(spark) == []
