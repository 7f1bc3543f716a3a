"""Watermarks that are raised ahead of Spark, on real queries."""

import shutil
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.engines.spark.gates import execution
from slackwater.engines.spark.gates.watermark import why_two_batches
from slackwater.spark import Fleet
from tests.waiting import eventually

pytestmark = pytest.mark.spark

MakeFleet = Callable[..., Fleet]


def ticks(spark: SparkSession, column: str = "timestamp") -> DataFrame:
    rate = spark.readStream.format("rate").option("rowsPerSecond", "20").load()
    return rate.withColumnRenamed("timestamp", column)


def counted(rows: DataFrame, column: str = "timestamp") -> DataFrame:
    return rows.groupBy(F.window(column, "1 second")).count()


def why(fleet: Fleet, name: str) -> str | None:
    return fleet.status().only(name).queries[0].why_two_batches


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda s: counted(ticks(s).withWatermark("timestamp", "1 second")), None),
        (
            lambda s: counted(
                ticks(s).where("value % 2 = 0").withWatermark("timestamp", "0 seconds")
            ),
            "rows are filtered before the watermark",
        ),
        (
            lambda s: counted(
                ticks(s)
                .withColumn("at", F.col("timestamp") + F.expr("interval 1 second"))
                .withWatermark("at", "1 second"),
                "at",
            ),
            "the event time is computed",
        ),
        (
            lambda s: counted(ticks(s).union(ticks(s)).withWatermark("timestamp", "1 second")),
            "several inputs share a watermark",
        ),
    ],
)
def test_a_window_takes_one_batch_where_the_frontier_is_that_of_the_watermark(
    build: Callable[[SparkSession], DataFrame],
    reason: str | None,
    spark: SparkSession,
    make_fleet: MakeFleet,
) -> None:
    fleet = make_fleet("klink")
    fleet.start(build(spark).writeStream.format("noop"), name="q")
    assert why(fleet, "q") == reason
    assert why_two_batches(build(spark)) == reason, "the planner would not know"


def test_one_batch_closes_a_window(spark: SparkSession, make_fleet: MakeFleet) -> None:
    """Every batch that emits is the one that read past the window's end."""
    fleet = make_fleet("klink")
    rows = ticks(spark).withWatermark("timestamp", "0 seconds")
    query = fleet.start(counted(rows).writeStream.format("memory"), name="one")
    eventually(lambda: spark.table("one").count() >= 4, 60)
    fleet.stop_query("one")
    assert all(row["count"] == 20 for row in spark.table("one").collect()[1:])
    ran = [p for p in query.recentProgress if p.numInputRows or p.sink.numOutputRows > 0]
    assert all(p.numInputRows for p in ran), "a batch without data had to emit"


def test_a_spark_without_what_it_takes_keeps_two_batches(
    spark: SparkSession,
    make_fleet: MakeFleet,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert execution.probe_raise(spark) is None
    monkeypatch.setattr(execution, "_PROPAGATES", "moved")
    fleet = make_fleet("klink")
    missing = f"Spark {spark.version} has no MicroBatchExecution.moved, which raises watermarks"
    assert f"windows take two batches: {missing}" in caplog.text
    rows = ticks(spark).withWatermark("timestamp", "0 seconds")
    fleet.start(counted(rows).writeStream.format("memory"), name="lacking")
    assert why(fleet, "lacking") == missing
    eventually(lambda: spark.table("lacking").count() >= 2, 60)


def test_off_leaves_it_to_spark(spark: SparkSession, make_fleet: MakeFleet) -> None:
    fleet = make_fleet("klink", one_batch="off")
    rows = ticks(spark).withWatermark("timestamp", "0 seconds")
    query = fleet.start(counted(rows).writeStream.format("memory"), name="two")
    eventually(lambda: spark.table("two").count() >= 2, 60)
    assert any(not p.numInputRows and p.sink.numOutputRows > 0 for p in query.recentProgress)


def files(folder: Path, number: int, *ago_s: float) -> None:
    """Write rows of some seconds ago."""
    folder.mkdir(exist_ok=True)
    times = [datetime.fromtimestamp(int(time.time()) - ago, UTC) for ago in ago_s]
    text = "\n".join(f'{{"at": "{each.isoformat()}"}}' for each in times)
    hidden = folder / f".{number}"  # Spark must not see it half written
    hidden.write_text(text)
    hidden.rename(folder / f"{number}.json")


def read(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema("at timestamp").json(str(folder))


@pytest.mark.parametrize("idle_after", [None, 2.0])
def test_a_source_that_falls_silent_closes_its_last_window_if_it_may(
    idle_after: float | None, spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    files(folder, 1, 2, 1)
    fleet = make_fleet("klink")
    rows = read(spark, folder).withWatermark("at", "1 second")
    name = f"silent{idle_after is None}"
    fleet.start(
        rows.groupBy(F.window("at", "1 second")).count().writeStream.format("memory"),
        name=name,
        idle_after=idle_after,
    )
    ends = f"select unix_timestamp(window.end) e from {name}"
    if idle_after is None:
        eventually(lambda: fleet.status().queries[0].batches >= 1, 60)
        files(folder, 2, -5)  # closes two windows, not its own
        eventually(lambda: spark.sql(ends).count() >= 2, 60)
        assert spark.sql(ends).count() == 2
    else:
        eventually(lambda: spark.sql(ends).count() == 2, 60)


def test_a_join_is_not_held_up_by_a_silent_input_if_it_may_be(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    left, right = tmp_path / "left", tmp_path / "right"
    files(left, 1, 1)
    shutil.copytree(left, right)
    a = read(spark, left).withWatermark("at", "1 second").alias("a")
    b = read(spark, right).withWatermark("at", "1 second").alias("b")
    both = a.join(b, F.expr("a.at = b.at"), "left_outer").select(F.col("a.at"), F.col("b.at"))
    fleet = make_fleet("klink")
    fleet.start(both.toDF("x", "y").writeStream.format("memory"), name="outer", idle_after=1.0)
    eventually(lambda: spark.table("outer").count() == 1, 60)
    files(left, 2, 0)  # has no partner; told once nothing can come of it
    eventually(lambda: spark.table("outer").where("y is null").count() == 1, 60)


def test_a_source_with_a_limit_of_its_own_keeps_two_batches(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    files(tmp_path / "in", 1, 2)
    reader = spark.readStream.schema("at timestamp").option("maxFilesPerTrigger", 1)
    rows = reader.json(str(tmp_path / "in")).withWatermark("at", "1 second")
    fleet = make_fleet("klink")
    writer = rows.groupBy(F.window("at", "1 second")).count().writeStream.format("noop")
    fleet.start(writer, name="q", frontier=lambda query: time.time())
    assert why(fleet, "q") == "the source's batches may leave rows behind (maxfilespertrigger)"


def test_rows_that_come_too_late_are_counted(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    fleet = make_fleet("klink")
    rows = read(spark, folder).withWatermark("at", "1 second")
    fleet.start(
        rows.groupBy(F.window("at", "1 second")).count().writeStream.format("noop"), name="late"
    )

    def dropped() -> int | None:
        return fleet.status().queries[0].rows_dropped_by_watermark

    for number, ago in enumerate((100, 50)):  # the second batch runs with the first's watermark
        before = fleet.status().queries[0].rows
        files(folder, number, ago)
        eventually(lambda before=before: fleet.status().queries[0].rows > before, 60)
    assert dropped() == 0
    eventually(lambda: fleet.status().queries[0].state == "held", 60)
    files(folder, 9, 200)
    eventually(lambda: dropped() == 1, 60)
    assert "dropped late" in str(fleet.status())


def test_of_a_time_that_is_computed_the_user_can_tell(
    spark: SparkSession, make_fleet: MakeFleet
) -> None:
    fleet = make_fleet("klink")
    rows = ticks(spark).withColumn("at", F.expr("timestamp + interval 1 second"))
    writer = counted(rows.withWatermark("at", "1 second"), "at").writeStream.format("noop")
    fleet.start(writer, name="q", frontier=lambda query: None)
    assert why(fleet, "q") is None


def test_a_frontier_that_fails_leaves_the_watermark_to_spark(
    spark: SparkSession, make_fleet: MakeFleet
) -> None:
    def broken(query: str) -> float:
        raise OSError("no connection")

    fleet = make_fleet("klink")
    rows = ticks(spark).withWatermark("timestamp", "0 seconds")
    fleet.start(counted(rows).writeStream.format("memory"), name="broken", frontier=broken)
    eventually(lambda: spark.table("broken").count() >= 2, 60)
    assert why(fleet, "broken") == "no connection"


def test_wrong_wishes_are_refused(spark: SparkSession, make_fleet: MakeFleet) -> None:
    with pytest.raises(UsageError, match="one_batch is auto or off"):
        make_fleet("klink", one_batch="sometimes")
    fleet = make_fleet("klink")
    with pytest.raises(UsageError, match="idle_after must be positive"):
        fleet.start(ticks(spark).writeStream.format("noop"), name="q", idle_after=-1)
    with pytest.raises(UsageError, match="one_batch is auto or off"):
        fleet.start(ticks(spark).writeStream.format("noop"), name="q", one_batch="on")  # type: ignore[arg-type]
