"""Queries without input: their sources are asked, and no trigger runs until something comes."""

import json
import logging
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.queries.input_watch import InputWatch
from slackwater.spark import read_log, write_log
from tests.waiting import eventually

pytestmark = pytest.mark.spark

STILL_S = 5.0  # longer than a query without windows is left alone if nobody tells
LIMIT_S = 120.0  # the machine may be busy


def files(spark: SparkSession, folder: Path) -> DataFrame:
    folder.mkdir(exist_ok=True)
    return spark.readStream.schema("time timestamp, n long").json(str(folder))


def drop(folder: Path, number: int) -> None:
    row = {"time": f"2026-01-01T00:00:{number:02d}Z", "n": number}
    (folder / f".{number}").write_text(json.dumps(row))
    (folder / f".{number}").rename(folder / f"{number}.json")


def admissions(fleet: Fleet, name: str) -> int:
    known, _ = fleet._launcher.look()
    return known[name].admissions


def rows(fleet: Fleet, name: str) -> int:
    return next(query.rows or 0 for query in fleet.status().queries if query.name == name)


def still(fleet: Fleet, name: str) -> None:
    """Wait until a query is left alone for several seconds."""
    seen = [0, time.monotonic()]

    def holds() -> bool:
        now = admissions(fleet, name)
        if now != seen[0]:
            seen[:] = [now, time.monotonic()]
        return now > 0 and time.monotonic() - seen[1] > STILL_S

    eventually(holds, LIMIT_S, pause_s=0.1)


def test_no_trigger_runs_over_a_silent_folder(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    fleet = make_fleet("klink")
    plain = files(spark, folder)
    marked = plain.withWatermark("time", "1 second")
    counts = marked.groupBy(F.window("time", "5 seconds")).count()
    fleet.start(plain.writeStream.format("noop"), name="plain")
    fleet.start(counts.writeStream.format("noop").outputMode("update"), name="counts")
    drop(folder, 1)
    for name in ("plain", "counts"):
        eventually(lambda name=name: rows(fleet, name) == 1, LIMIT_S)
        still(fleet, name)
    for number in (2, 3):
        drop(folder, number)
        for name in ("plain", "counts"):
            eventually(lambda number=number, name=name: rows(fleet, name) == number, LIMIT_S)


def test_a_query_that_has_never_read_is_asked_for_as_well(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    fleet = make_fleet("klink")
    (folder / "below").mkdir(parents=True)
    deep = spark.readStream.schema("n long").option("recursiveFileLookup", True)
    fleet.start(deep.json(str(folder)).writeStream.format("noop"), name="plain")
    still(fleet, "plain")
    drop(folder / "below", 1)
    eventually(lambda: rows(fleet, "plain") == 1, LIMIT_S)


def test_a_log_of_ours_tells(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    folder = tmp_path / "in"
    fleet = make_fleet("klink")
    written = write_log(files(spark, folder), tmp_path / "log")
    fleet.start(written.option("checkpointLocation", str(tmp_path / "c")), name="writes")
    read = read_log(spark, tmp_path / "log")
    fleet.start(read.writeStream.format("noop"), name="reads")
    still(fleet, "reads")
    drop(folder, 1)
    eventually(lambda: rows(fleet, "reads") == 1, LIMIT_S)


def test_one_source_that_cannot_tell_is_enough_to_look_as_ever(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "slackwater.fleet")
    folder = tmp_path / "in"
    fleet = make_fleet("klink")
    with socket.create_server(("127.0.0.1", 0)) as silent:
        host, port = silent.getsockname()
        lines = spark.readStream.format("socket").option("host", host).option("port", port).load()
        both = files(spark, folder).select(F.col("n").cast("string")).union(lines)
        query = fleet.start(both.writeStream.format("noop"), name="both")
        eventually(lambda: "TextSocket" in caplog.text, LIMIT_S)
        seen = admissions(fleet, "both")
        eventually(lambda: admissions(fleet, "both") > seen + 3, LIMIT_S)
        drop(folder, 1)
        eventually(lambda: rows(fleet, "both") == 1, LIMIT_S)
        query.stop()


def test_triggers_look_where_nobody_asks(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The thread has come to its end, or hangs."""
    monkeypatch.setattr(InputWatch, "_run", lambda self: None)
    folder = tmp_path / "in"
    fleet = make_fleet("klink")
    fleet.start(files(spark, folder).writeStream.format("noop"), name="plain")
    eventually(lambda: admissions(fleet, "plain") > 8, LIMIT_S)
    drop(folder, 1)
    eventually(lambda: rows(fleet, "plain") == 1, LIMIT_S)


def test_its_threads_end_with_the_fleet(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("klink")
    fleet.start(files(spark, tmp_path / "in").writeStream.format("noop"), name="plain")
    still(fleet, "plain")
    fleet.stop()
    eventually(lambda: not any(t.name == "slackwater-inputs" for t in threading.enumerate()))
