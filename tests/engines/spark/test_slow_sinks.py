"""A sink that takes its time holds up nobody else."""

import threading
from collections.abc import Callable

import pytest
from pyspark.sql import DataFrame, SparkSession

from slackwater.engines.spark.fleet import Fleet
from tests.waiting import eventually

pytestmark = pytest.mark.spark

LIMIT_S = 240.0


def test_others_run_while_a_batch_waits_for_its_sink(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    """There is one slot, and it waits for longer than the test takes."""
    fleet = make_fleet("klink", slots=1, max_wait=10 * LIMIT_S)
    reached, go_on = threading.Event(), threading.Event()

    def sleep(batch: DataFrame, number: int) -> None:
        reached.set()
        go_on.wait(LIMIT_S)

    def state(name: str) -> tuple[str, int]:
        row = fleet.status(name).queries[0]
        return row.state, row.batches

    rows = spark.readStream.format("rate").option("rowsPerSecond", 5).load()
    fleet.start(rows.writeStream.foreachBatch(sleep), name="slow_sink")
    eventually(reached.is_set, LIMIT_S)
    fleet.start(rows.writeStream.format("memory"), name="beside")
    eventually(lambda: state("beside")[1] >= 3, LIMIT_S)
    assert state("slow_sink") == ("in sink", 0)
    go_on.set()
    eventually(lambda: state("slow_sink")[1] >= 1, LIMIT_S)
