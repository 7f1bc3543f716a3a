"""Tables that are refreshed by runs, on real Spark."""

import json
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core import SlackwaterError, UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.queries.status import QueryStatus
from slackwater.operations.dashboard.command import look
from slackwater.operations.dashboard.status import QueryStatus as Shown
from tests.engines.spark.test_fleet import batches, rate
from tests.waiting import eventually

pytestmark = pytest.mark.spark

TABLES = 12


def land(folder: Path, number: int, rows: int = 20) -> list[tuple[int, int]]:
    """Put another file of rows where a table reads; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    found = [(number, row % 7) for row in range(rows)]
    hidden = folder / f".{number}.json"
    hidden.write_text("\n".join(json.dumps({"file": a, "value": b}) for a, b in found) + "\n")
    hidden.rename(folder / f"{number}.json")
    return found


def read(spark: SparkSession, folder: Path) -> DataFrame:
    rows = spark.readStream.schema("file int, value int").option("maxFilesPerTrigger", 1)
    return rows.json(str(folder)).withColumn("value", F.col("value") * 10)


def written(spark: SparkSession, folder: Path) -> Counter[tuple[int, int]]:
    if not any(folder.glob("*.parquet")):
        return Counter()
    rows = spark.read.schema("file int, value int").parquet(str(folder)).collect()
    return Counter((row.file, row.value) for row in rows)


def truth(rows: list[tuple[int, int]]) -> Counter[tuple[int, int]]:
    return Counter((file, 10 * value) for file, value in rows)


def add(fleet: Fleet, tmp_path: Path, name: str, **options: object) -> None:
    writer = read(fleet.spark, tmp_path / "in" / name).writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "out" / name))
    checkpoint = tmp_path / "c" / name
    fleet.refresh(writer, name=name, checkpoint=checkpoint, **options)  # type: ignore[arg-type]


def of(fleet: Fleet, name: str) -> QueryStatus:
    return next(query for query in fleet.status().queries if query.name == name)


def on_the_page(fleet: Fleet) -> dict[str, Shown]:
    """Return what the page has of each query; nothing where the controller answers too late."""
    try:
        return {query.name: query for query in look([fleet.socket]).queries}
    except SlackwaterError:
        return {}


class Watched:
    """How many runs are active at once, as Spark tells."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.most = 0

    def until(self, holds: Callable[[], bool], limit_s: float = 120.0) -> None:
        def seen() -> bool:
            names = [query.name for query in self.spark.streams.active if query.name[0] == "t"]
            assert len(names) == len(set(names))
            self.most = max(self.most, len(names))
            return holds()

        eventually(seen, limit_s)


@pytest.mark.parametrize("policy", ["klink", "spark"])
def test_twelve_tables_a_few_at_a_time(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path, policy: str
) -> None:
    names = [f"t{number}" for number in range(TABLES)]
    rows = {
        name: land(tmp_path / "in" / name, 0) + land(tmp_path / "in" / name, 1) for name in names
    }
    fleet = make_fleet(policy, runs_at_once=2)
    beside = fleet.start(rate(spark).writeStream.format("noop"), name="beside")
    for name in names:
        add(fleet, tmp_path, name, every="4 seconds")
    watched = Watched(spark)
    watched.until(lambda: all(of(fleet, name).age_s is not None for name in names))
    for name in names:
        rows[name] += land(tmp_path / "in" / name, 2)
    watched.until(
        lambda: all(written(spark, tmp_path / "out" / n) == truth(rows[n]) for n in names)
    )
    assert 1 <= watched.most <= 2
    assert beside.isActive

    def shown_as_tables() -> bool:
        shown = on_the_page(fleet)
        found = [shown[name] for name in names if name in shown]
        assert {table.state for table in found} <= {"fresh", "due", "running"}
        return [table.every_s for table in found] == [4.0] * len(names)

    eventually(shown_as_tables)
    table = str(fleet.status())
    assert "age s" in table
    assert "every s" in table


def test_a_failing_table_is_retried_and_the_others_go_on(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    rows = land(tmp_path / "in" / "good", 0)
    broken = land(tmp_path / "in" / "bad", 0)
    fleet = make_fleet("klink", runs_at_once=1)
    tried: list[float] = []
    mended = tmp_path / "mended"

    def write(frame: DataFrame, batch: int) -> None:
        tried.append(time.monotonic())
        if not mended.exists():
            raise OSError("no such disk")
        frame.write.mode("append").parquet(str(tmp_path / "out" / "bad"))

    writer = read(spark, tmp_path / "in" / "bad").writeStream.foreachBatch(write)
    fleet.refresh(writer, name="bad", checkpoint=tmp_path / "c" / "bad", every=0.5)
    add(fleet, tmp_path, "good", every=0.5)
    eventually(lambda: len(tried) >= 3, 120)
    found = of(fleet, "bad")
    assert found.failures >= 2
    assert found.state in ("retrying", "running")
    assert found.error
    assert "bad" in fleet.failures
    assert tried[2] - tried[1] > 2.5  # four seconds, but for the jitter
    eventually(lambda: any(q.failures for q in on_the_page(fleet).values()))
    rows += land(tmp_path / "in" / "good", 1)
    eventually(lambda: written(spark, tmp_path / "out" / "good") == truth(rows), 60)
    mended.touch()
    eventually(lambda: written(spark, tmp_path / "out" / "bad") == truth(broken), 60)
    eventually(lambda: of(fleet, "bad").failures == 0)
    assert fleet.failures == {}


def test_a_table_is_refreshed_once(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("fcfs")
    rows = {}
    for name, trigger in (("a", "availableNow"), ("b", "once")):
        rows[name] = land(tmp_path / "in" / name, 0) + land(tmp_path / "in" / name, 1)
        add(fleet, tmp_path, name, trigger=trigger)
    assert fleet.wait(120)
    assert fleet.failures == {}
    assert {query.state for query in fleet.status().queries} == {"stopped"}
    for name in rows:
        assert written(spark, tmp_path / "out" / name) == truth(rows[name])
    commits = {name: len(list((tmp_path / "c" / name / "commits").glob("[0-9]*"))) for name in rows}
    assert commits["a"] == 2  # a file a batch, as its source is limited
    assert commits["b"] == 1


def test_a_restart_knows_how_stale_a_table_is_and_goes_on(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    rows = land(tmp_path / "in" / "t", 0)
    fleet = make_fleet("fcfs")
    add(fleet, tmp_path, "t", every="1 hour")
    eventually(lambda: of(fleet, "t").state == "fresh", 60)
    fleet.stop()
    rows += land(tmp_path / "in" / "t", 1)
    again = make_fleet("fcfs")
    add(again, tmp_path, "t", every="1 hour")
    assert of(again, "t").state == "fresh"
    assert (of(again, "t").age_s or 0.0) < 600
    again.stop_query("t")
    add(again, tmp_path, "t", every="1 second")
    eventually(lambda: written(spark, tmp_path / "out" / "t") == truth(rows), 60)


def test_a_fleet_that_stops_in_the_middle_of_a_run(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    rows = land(tmp_path / "in" / "t", 0)
    begun = tmp_path / "begun"

    def slow(frame: DataFrame, batch: int) -> None:
        begun.touch()
        time.sleep(2)
        frame.write.mode("append").parquet(str(tmp_path / "out" / "t"))

    fleet = make_fleet("fcfs")
    writer = read(spark, tmp_path / "in" / "t").writeStream.foreachBatch(slow)
    fleet.refresh(writer, name="t", checkpoint=tmp_path / "c" / "t", every="1 second")
    eventually(begun.exists, 60)
    fleet.stop()
    assert not [query for query in spark.streams.active if query.name == "t"]
    assert written(spark, tmp_path / "out" / "t") == truth(rows)  # it was waited for


def test_a_run_takes_a_slot(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    land(tmp_path / "in" / "t", 0)
    begun, go_on = tmp_path / "begun", tmp_path / "go on"

    def slow(frame: DataFrame, batch: int) -> None:
        begun.touch()
        eventually(go_on.exists, 60)

    fleet = make_fleet("fcfs", slots=1, max_wait=600)
    beside = fleet.start(rate(spark).writeStream.format("noop"), name="beside")
    eventually(lambda: batches(beside) >= 1)
    writer = read(spark, tmp_path / "in" / "t").writeStream.foreachBatch(slow)
    fleet.refresh(writer, name="t", checkpoint=tmp_path / "c" / "t", every="1 hour")
    eventually(begun.exists, 60)
    eventually(lambda: of(fleet, "beside").state == "held")
    reached = batches(beside)
    time.sleep(1.5)
    assert (batches(beside), of(fleet, "beside").state) == (reached, "held")
    assert of(fleet, "t").state == "running"
    go_on.touch()
    eventually(lambda: batches(beside) > reached + 1)
    assert of(fleet, "t").state == "fresh"


def test_a_table_is_paused_and_resumed(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    rows = land(tmp_path / "in" / "t", 0)
    fleet = make_fleet("fcfs")
    add(fleet, tmp_path, "t", every="1 second")
    eventually(lambda: of(fleet, "t").age_s is not None, 60)
    fleet.pause("t")
    assert of(fleet, "t").state == "paused"
    rows += land(tmp_path / "in" / "t", 1)
    time.sleep(2)
    assert written(spark, tmp_path / "out" / "t") != truth(rows)
    fleet.resume("t")
    eventually(lambda: written(spark, tmp_path / "out" / "t") == truth(rows), 60)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"every": "now and then"}, "t: every: 'now and then' is not a duration"),
        ({"every": 0}, "t: every must be positive"),
        ({"every": "0 seconds"}, "t: every must be positive"),
        ({"trigger": "2 seconds"}, "t: trigger is availableNow or once, not '2 seconds'"),
        ({"priority": -1}, "priority must not be negative"),
        ({"max_wait": "soon"}, "t: max_wait: 'soon' is not a duration"),
        ({"max_wait": 0}, "t: max_wait must be positive"),
    ],
)
def test_what_makes_no_sense(
    make_fleet: Callable[..., Fleet], tmp_path: Path, options: dict[str, object], expected: str
) -> None:
    fleet = make_fleet("fcfs", controller="thread")
    (tmp_path / "in" / "t").mkdir(parents=True)
    with pytest.raises(UsageError, match=expected) as caught:
        add(fleet, tmp_path, "t", **options)
    assert "\n" not in str(caught.value)
    assert fleet.status().queries == ()


def test_a_frame_is_no_writer(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet, frame = make_fleet("fcfs", controller="thread"), rate(spark)
    with pytest.raises(UsageError, match=r"refresh takes df\.writeStream, not df"):
        fleet.refresh(frame, name="t", checkpoint=tmp_path)  # type: ignore[arg-type]
    assert fleet.status().queries == ()


def test_a_fleet_that_was_stopped_refreshes_nothing(
    make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    (tmp_path / "in" / "t").mkdir(parents=True)
    fleet = make_fleet("fcfs", controller="thread")
    fleet.stop()
    with pytest.raises(UsageError, match="has been stopped"):
        add(fleet, tmp_path, "t")


def test_runs_at_once_is_at_least_one(make_fleet: Callable[..., Fleet]) -> None:
    with pytest.raises(UsageError, match="runs_at_once must be at least 1"):
        make_fleet("fcfs", runs_at_once=0)
