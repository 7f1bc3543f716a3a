"""A fleet whose queries may be shed, on real Spark."""

import threading
import time

import pytest
from pyspark.sql import DataFrame, SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.queries.status import QueryStatus
from slackwater.engines.spark.shedding.loop import QualitySettings
from slackwater.engines.spark.shedding.shedders import find_shedders
from slackwater.traffic import Traffic
from slackwater_bench.workloads.knn import Knn
from tests.waiting import eventually

pytestmark = pytest.mark.spark


def of(fleet: Fleet, name: str) -> QueryStatus:
    return next(query for query in fleet.status().queries if query.name == name)


def knn(rate: str, seed: int, references: int = 200) -> Knn:
    traffic = Traffic(start_s=float(int(time.time())), rate=rate, seed=seed)
    return Knn(traffic=traffic, references=references)


@pytest.mark.timeout(900)
def test_rows_are_shed_under_load_and_no_longer_when_it_falls(spark: SparkSession) -> None:
    """Far more than the machine can do at first, and then next to nothing."""
    heavy = knn("steps:0=20000,30=20", seed=1)
    # Other work on the machine is none of this test's business.
    settings = QualitySettings(period_s=0.5, counts_others=False)
    with Fleet(spark, "fcfs", name="quality-1", quality=settings) as fleet:
        writer = heavy.query(spark).writeStream.format("noop")
        fleet.start(writer, name="knn", min_accuracy=0.01)
        eventually(lambda: (of(fleet, "knn").accuracy or (0, 1.0))[1] < 0.8, 240)
        eventually(lambda: (_delivered(fleet) or 1.0) < 0.8, 120)
        shown = str(fleet.status())
        assert "desired" in shown
        assert "delivered" in shown
        eventually(lambda: _desired(fleet) > 0.99, 300)
        eventually(lambda: (_delivered(fleet) or 0.0) > 0.99, 120)


def _desired(fleet: Fleet) -> float:
    accuracy = of(fleet, "knn").accuracy
    assert accuracy is not None
    return accuracy.desired


def _delivered(fleet: Fleet) -> float | None:
    accuracy = of(fleet, "knn").accuracy
    return None if accuracy is None else accuracy.delivered


def test_a_rate_is_known_while_a_micro_batch_runs(spark: SparkSession) -> None:
    entered, go_on = threading.Event(), threading.Event()

    def write(_batch: DataFrame, _number: int) -> None:
        entered.set()
        go_on.wait(120)

    with Fleet(spark, "fcfs", name="quality-3") as fleet:
        rows = knn("700", seed=1, references=10).query(spark)
        fleet.start(rows.writeStream.foreachBatch(write), name="knn", min_accuracy=0.5)
        files = find_shedders(rows).files
        try:
            eventually(entered.is_set, 120)
            eventually(lambda: fleet.quality.rate("knn") == pytest.approx(700, rel=0.02), 60)
            assert of(fleet, "knn").batches == 0
        finally:
            go_on.set()
    left = [path for file in files for path in (file.path, file.reply_path) if path.exists()]
    assert not left, "nothing is left behind"


def test_what_cannot_be_shed_is_refused(spark: SparkSession) -> None:
    with Fleet(spark, "fcfs", name="quality-2") as fleet:
        plain = spark.readStream.format("rate").load().writeStream.format("noop")
        with pytest.raises(UsageError, match="rows that can be shed"):
            fleet.start(plain, name="plain", min_accuracy=0.5)
        ours = knn("10", 1, 10).query(spark).writeStream.format("noop")
        with pytest.raises(UsageError, match="between 0 and 1"):
            fleet.start(ours, name="ours", min_accuracy=1.5)
        assert fleet.status().queries == ()
