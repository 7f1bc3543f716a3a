"""Queries on Spark's own sources read no more than they are granted, and everything once."""

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.gates.read_limits import probe
from slackwater.policies import _memory
from tests.engines.spark.gates import pieces
from tests.waiting import eventually

pytestmark = pytest.mark.spark

MakeFleet = Callable[..., Fleet]
FILES, EACH = 200, 5  # rows in each


def write_files(folder: Path, first: int = 0, files: int = FILES) -> Path:
    """Write files of equal size, each with a second of events and as old as they are."""
    folder.mkdir(exist_ok=True)
    for number in range(first, first + files):
        rows = [
            f'{{"id": {10_000 + EACH * number + place}, "at": {1_700_000_000 + number}}}'
            for place in range(EACH)
        ]
        path = folder / f"{number}.json"
        path.write_text("\n".join(rows) + "\n")
        os.utime(path, 2 * (1_700_000_000 + number,))  # the order in which Spark reads them
    return folder


def read(spark: SparkSession, folder: Path, **options: str) -> DataFrame:
    reader = spark.readStream.schema("id long, at long").options(**options)
    return reader.json(str(folder))


class Batches:
    """Rows of each batch, by query."""

    def __init__(self, fleet: Fleet) -> None:
        self.rows: dict[str, list[int]] = {}
        fleet.on_progress(self._take)

    def _take(self, name: str, progress: dict[str, Any]) -> None:
        if progress["numInputRows"]:
            self.rows.setdefault(name, []).append(progress["numInputRows"])

    def read(self, name: str) -> int:
        return sum(self.rows.get(name, ()))


def limited(make_fleet: MakeFleet, rows: int | None, *first: int | None) -> tuple[Fleet, Batches]:
    given = {"rows": rows, "first": first}
    fleet = make_fleet(pieces.NAME, controller="thread", parameters=given)
    return fleet, Batches(fleet)


def ids(spark: SparkSession, table: str) -> list[int]:
    return sorted(row["id"] for row in spark.table(table).collect())


def test_this_spark_has_what_it_takes(spark: SparkSession) -> None:
    assert probe(spark) is None


def test_files_are_read_in_pieces_and_every_row_once(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet, batches = limited(make_fleet, 10 * EACH)
    rows = read(spark, write_files(tmp_path / "in"))
    fleet.start(rows.writeStream.format("memory"), name="files")
    eventually(lambda: batches.read("files") == FILES * EACH, 90)
    first, *others = batches.rows["files"]
    assert first == EACH, "of files nothing is known before one is read"
    assert max(others) == 10 * EACH
    assert ids(spark, "files") == list(range(10_000, 10_000 + FILES * EACH))
    write_files(tmp_path / "in", first=FILES, files=1)
    eventually(lambda: batches.read("files") == (FILES + 1) * EACH, 60)


def test_a_plan_that_changes_as_it_runs_tells_what_was_read(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet, batches = limited(make_fleet, 20 * EACH)
    rows = read(spark, write_files(tmp_path / "in")).repartition(2)
    fleet.start(rows.writeStream.format("noop"), name="adaptive")
    eventually(lambda: batches.read("adaptive") == FILES * EACH, 90)
    assert max(batches.rows["adaptive"]) > EACH
    assert max(batches.rows["adaptive"]) <= 20 * EACH


@pytest.mark.parametrize(
    ("option", "value", "most"),
    [
        ("maxFilesPerTrigger", "30", 20),
        ("maxFilesPerTrigger", "7", 7),
        ("maxBytesPerTrigger", "10240", 20),
        ("maxBytesPerTrigger", "1", 1),
        ("maxCachedFiles", "0", 20),
    ],
)
def test_a_users_own_limit_holds_too(
    option: str,
    value: str,
    most: int,
    spark: SparkSession,
    make_fleet: MakeFleet,
    tmp_path: Path,
) -> None:
    files = 60 if most > 1 else 5
    fleet, batches = limited(make_fleet, 20 * EACH)
    rows = read(spark, write_files(tmp_path / "in", files=files), **{option: value})
    fleet.start(rows.writeStream.format("noop"), name="own")
    eventually(lambda: batches.read("own") == files * EACH, 90)
    assert max(batches.rows["own"]) == most * EACH


def test_newest_files_first_are_not_cut_to_pieces(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    """What is left over would be older than what was read, and late."""
    fleet, batches = limited(make_fleet, 10 * EACH, 0, 0)
    rows = read(spark, write_files(tmp_path / "in"), latestFirst="true")
    fleet.start(rows.writeStream.format("noop"), name="newest")
    eventually(lambda: batches.read("newest") == FILES * EACH, 60)
    assert batches.rows["newest"] == [FILES * EACH]


def test_nothing_is_read_for_once_and_then_all_there_is(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    """Also what came after the source had made its list of files."""
    fleet, batches = limited(make_fleet, 0)
    folder = write_files(tmp_path / "in", files=3)
    fleet.start(read(spark, folder).writeStream.format("noop"), name="none")
    eventually(lambda: len([d for d in fleet.explain(last=50) if d["query"] == "none"]) >= 3, 60)
    assert batches.read("none") == 0
    write_files(folder, first=3, files=2)
    fleet.switch("fcfs")
    eventually(lambda: batches.read("none") > 0, 60)
    assert batches.rows["none"] == [5 * EACH]


@pytest.mark.parametrize("leave", ["release", "off"])
def test_a_query_that_is_let_go_reads_as_plain_spark(
    leave: str, spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet, batches = limited(make_fleet, EACH)
    rows = read(spark, write_files(tmp_path / "in"))
    query = fleet.start(rows.writeStream.format("memory"), name=f"gone{leave}")
    eventually(lambda: batches.read(f"gone{leave}") >= 3 * EACH, 60)
    if leave == "release":
        fleet.release(f"gone{leave}")
    else:
        fleet.off()
    query.processAllAvailable()
    largest = max(progress.numInputRows for progress in query.recentProgress)
    assert largest > FILES * EACH // 2
    assert ids(spark, f"gone{leave}") == list(range(10_000, 10_000 + FILES * EACH))
    query.stop()


def behind(checkpoint: Path, seconds: int) -> str:
    """Make the checkpoint of a rate source that began some time ago."""
    (checkpoint / "sources" / "0").mkdir(parents=True)
    began_ms = int(1000 * (time.time() - seconds))
    (checkpoint / "sources" / "0" / "0").write_text(f"v1\n{began_ms}")
    return str(checkpoint)


def test_an_hour_of_ticks_is_read_in_pieces(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet, batches = limited(make_fleet, 10_000, 0)
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    checkpoint = behind(tmp_path / "checkpoint", 3600)
    kept: list[int] = []

    def keep(rows: DataFrame, batch: int) -> None:
        kept.extend(row["value"] for row in rows.select("value").collect())

    writer = ticks.writeStream.option("checkpointLocation", checkpoint).foreachBatch(keep)
    fleet.start(writer, name="ticks")
    eventually(lambda: batches.read("ticks") >= 36_000, 90)
    fleet.stop_query("ticks")
    assert batches.rows["ticks"][:3] == [10_000] * 3
    before = len(kept)
    again = ticks.writeStream.option("checkpointLocation", checkpoint).foreachBatch(keep).start()
    eventually(lambda: len(kept) > before, 60)  # as plain Spark
    again.stop()
    assert sorted(kept) == list(range(len(kept)))


def test_klink_cuts_a_backlog_of_files_and_every_window_is_right(
    spark: SparkSession,
    make_fleet: MakeFleet,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_memory, "FIRST_ROWS", 10 * EACH)
    monkeypatch.setattr(_memory, "rows_that_fit", lambda *_: 10 * EACH)
    fleet = make_fleet("klink", controller="thread")
    batches = Batches(fleet)
    rows = read(spark, write_files(tmp_path / "in")).withColumn("at", F.timestamp_seconds("at"))
    counts = rows.withWatermark("at", "1 second").groupBy(F.window("at", "2 seconds")).count()
    fleet.start(counts.writeStream.format("memory"), name="cut", max_wait=2.0, in_pieces=True)
    eventually(lambda: spark.table("cut").count() >= FILES // 2 - 2, 120)
    assert max(batches.rows["cut"]) <= 10 * EACH
    assert {row["count"] for row in spark.table("cut").collect()} == {2 * EACH}


def test_what_would_be_late_after_a_piece_is_not_cut_off(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    """Files that were copied in any order: only one large batch counts all of their rows."""
    fleet, batches = limited(make_fleet, 10 * EACH)
    folder = write_files(tmp_path / "in")
    for number in range(FILES):
        os.utime(folder / f"{number}.json", 2 * (1_700_000_000 + FILES - number,))
    rows = read(spark, folder).withColumn("at", F.timestamp_seconds("at"))
    counts = rows.withWatermark("at", "1 second").groupBy(F.window("at", "2 seconds")).count()
    fleet.start(counts.writeStream.format("memory"), name="copied")
    eventually(lambda: spark.table("copied").count() >= FILES // 2 - 2, 60)
    assert {row["count"] for row in spark.table("copied").collect()} == {2 * EACH}
    assert batches.rows["copied"] == [FILES * EACH]
