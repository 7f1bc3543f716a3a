"""What gates and fleets keep on every version of Spark; ``make test-versions`` runs it on each.

Each test stands for a row of the table in ``docs/compatibility.md``. What a version lacks is
skipped with its reason, which the table shows.
"""

import json
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.core.model import Admission, Schedule
from slackwater.core.windows import InputStream, Window
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.gates import read_limits
from slackwater.engines.spark.gates.execution import probe_raise
from slackwater.engines.spark.plans.discovery import discover
from slackwater.engines.spark.session.versions import (
    HAS_ARROW_UDFS,
    HAS_PYTHON_SOURCES,
    HAS_READ_LIMITS,
    checkpoint_file_manager,
)
from slackwater.operations import recording
from slackwater.operations.dashboard.watch import Fleet as WatchedFleet
from slackwater.policies import Policy
from slackwater.spark import feed
from tests.engines.spark.gates import pieces
from tests.versions.conftest import Progress
from tests.versions.files import EACH, counts, truth, write_files
from tests.versions.killed_driver import KilledDriver
from tests.waiting import eventually

pytestmark = [pytest.mark.spark, pytest.mark.versions]

MakeFleet = Callable[..., tuple[Fleet, Progress]]
FILES = 8
QUICK = pytest.mark.quick  # part of the short form
PYTHON_SOURCES = pytest.mark.skipif(not HAS_PYTHON_SOURCES, reason="Python sources are from 4.0 on")


def feature(name: str) -> pytest.MarkDecorator:
    return pytest.mark.feature(name)


GATES = [
    pytest.param("clock", marks=[feature("clock gate"), QUICK]),
    pytest.param("source", marks=[feature("source gate"), PYTHON_SOURCES]),
]


class Never(Policy):
    """Admits nobody: only the bounds of the gates let a query through."""

    name = "never"

    def decide(self, snapshot):  # type: ignore[no-untyped-def]
        return Schedule()

    def _rank(self, waiting, snapshot) -> list[Admission]:  # type: ignore[no-untyped-def]
        return []


NEVER = f"{__name__}:Never"


def start(fleet: Fleet, frame: DataFrame, gate: str, name: str, sink: str = "memory") -> None:
    """Start a query behind a gate of this kind."""
    frame = fleet.gate(frame, name) if gate == "source" else frame
    fleet.start(frame.writeStream.format(sink).outputMode("append"), name=name)
    assert fleet.wait_ready(120)


def rows_of(spark: SparkSession, table: str) -> Counter[Any]:
    return Counter(tuple(row) for row in spark.table(table).collect())


def counted_rate(spark: SparkSession, window: str) -> DataFrame:
    """Count 50 rows a second in windows of event time."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    rows = rows.withWatermark("timestamp", "0 seconds")
    return rows.groupBy(F.window("timestamp", window)).count().select("window.end", "count")


def state(fleet: Fleet) -> str:
    return fleet.status().queries[0].state


@pytest.mark.parametrize("gate", GATES)
def test_a_query_is_held_granted_and_gives_the_truth(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path, gate: str
) -> None:
    folder = write_files(tmp_path / "in", FILES)
    fleet, progress = make_fleet(NEVER, gate=gate, max_wait=600)
    name = f"held_{gate}"
    start(fleet, counts(spark, folder), gate, name)
    eventually(lambda: state(fleet) == "held", limit_s=60)
    assert progress.batches == []  # not even its first micro-batch
    fleet.off()
    eventually(lambda: bool(progress.rows()), limit_s=60)
    fleet.stop()
    fleet, progress = make_fleet("fcfs", gate=gate)
    name = f"granted_{gate}"
    start(fleet, counts(spark, folder), gate, name)
    eventually(lambda: sum(progress.rows()) == FILES * EACH, limit_s=120)
    eventually(lambda: rows_of(spark, name) == truth(FILES), limit_s=60)
    assert fleet.explain(last=3)  # somebody has decided it
    assert progress.rows() == [EACH] * FILES


@pytest.mark.parametrize(
    "gate",
    [
        pytest.param("clock", marks=[feature("clock gate fails open"), QUICK]),
        pytest.param("source", marks=[feature("source gate fails open"), PYTHON_SOURCES]),
    ],
)
def test_a_killed_controller_holds_nobody(
    spark: SparkSession, make_fleet: MakeFleet, gate: str
) -> None:
    fleet, progress = make_fleet(NEVER, gate=gate, max_wait=600)
    rate = spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    start(fleet, rate, gate, f"open_{gate}", sink="noop")
    eventually(lambda: state(fleet) == "held", limit_s=60)
    assert fleet.controller_pid is not None
    os.kill(fleet.controller_pid, signal.SIGKILL)
    eventually(lambda: bool(progress.batches), limit_s=60)
    eventually(lambda: state(fleet) == "held", limit_s=60)  # by the next controller


@pytest.mark.parametrize(
    "gate",
    [
        pytest.param("clock", marks=feature("clock gate: equal results after kill -9")),
        pytest.param(
            "source", marks=[feature("source gate: equal results after kill -9"), PYTHON_SOURCES]
        ),
    ],
)
def test_a_killed_driver_loses_and_doubles_nothing(
    spark: SparkSession, tmp_path: Path, gate: str
) -> None:
    with KilledDriver(tmp_path, gate, files=30) as driver:
        driver.start()
        eventually(lambda: driver.batches() >= 4, limit_s=120)
        driver.kill()
        assert driver.batches() < 30, "killed too late to show anything"
        driver.start()
        eventually(lambda: driver.rows(spark) == truth(30), limit_s=150, pause_s=0.5)


@feature("windows found in plans")
@QUICK
def test_windows_and_watermarks_are_found(spark: SparkSession) -> None:
    rows = spark.readStream.format("rate").load().withWatermark("timestamp", "2 seconds")
    right = rows.selectExpr("timestamp AS time2", "value AS value2")
    near = "value = value2 AND time2 BETWEEN timestamp AND timestamp + INTERVAL 5 SECONDS"
    shapes = {
        "tumbling": rows.groupBy(F.window("timestamp", "3 seconds")).count(),
        "sliding": rows.groupBy(F.window("timestamp", "6 seconds", "2 seconds")).count(),
        "session": rows.groupBy(F.session_window("timestamp", "5 minutes")).count(),
    }
    found = {name: discover(frame) for name, frame in shapes.items()}
    assert {name: each.windows for name, each in found.items()} == {
        "tumbling": (Window("tumbling", 3.0, 3.0, 0.0, "timestamp", (0,)),),
        "sliding": (Window("sliding", 6.0, 2.0, 0.0, "timestamp", (0,)),),
        "session": (Window("session", 300.0, 300.0, 0.0, "timestamp", (0,)),),
    }
    assert all(each.inputs == (InputStream("rate", "timestamp", 2.0),) for each in found.values())
    assert len(discover(rows.join(right, F.expr(near))).inputs) == 2


@feature("one batch a window")
@QUICK
def test_a_window_takes_one_batch(spark: SparkSession, make_fleet: MakeFleet) -> None:
    """Its batch runs with a watermark that no earlier batch has read up to."""
    assert probe_raise(spark) is None
    fleet, progress = make_fleet("klink")
    start(fleet, counted_rate(spark, "2 seconds"), "clock", "one_batch")

    def raised() -> int:
        newest, found = "", 0
        for batch in progress.batches:
            times = batch.get("eventTime", {})
            found += bool(newest) and times.get("watermark", "") > newest
            newest = max(newest, times.get("max", ""))
        return found

    eventually(lambda: raised() >= 2, limit_s=60)
    _, *whole = sorted(spark.table("one_batch").collect())
    assert {row["count"] for row in whole} == {100}


@feature("row limits of Spark's sources")
@QUICK
def test_spark_s_sources_read_what_they_are_granted(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    assert read_limits.probe(spark) is None
    folder = write_files(tmp_path / "in", 40)
    given = {"rows": 10 * EACH}
    fleet, progress = make_fleet(pieces.NAME, controller="thread", parameters=given)
    rows = spark.readStream.schema("ms long, key long").json(str(folder))
    start(fleet, rows, "clock", "limited")
    eventually(lambda: sum(progress.rows()) == 40 * EACH, limit_s=90)
    assert max(progress.rows()) <= 11 * EACH
    assert spark.table("limited").count() == 40 * EACH


def seeded(spark: SparkSession, **options: Any) -> DataFrame:
    """Read 2,000 events that have all arrived by now."""
    start_s = float(int(time.time()) - 60)
    return feed(
        spark,
        "slackwater_bench.workloads.ysb_events:YsbEvents",
        rate="200",
        delays="constant:0ms",
        start=start_s,
        stop=start_s + 10,
        **options,
    )


@feature("Python sources (the feed)")
@PYTHON_SOURCES
def test_a_feed_is_read_once(spark: SparkSession, make_fleet: MakeFleet) -> None:
    fleet, progress = make_fleet("fcfs")
    start(fleet, seeded(spark).select("event_time"), "clock", "fed")
    eventually(lambda: sum(progress.rows()) == 2000, limit_s=60)
    assert spark.table("fed").count() == 2000


@feature("row limits of Python sources")
@pytest.mark.skipif(not HAS_READ_LIMITS, reason="Spark tells them from 4.2 on")
def test_a_feed_reads_no_more_than_its_limit(spark: SparkSession, make_fleet: MakeFleet) -> None:
    fleet, progress = make_fleet("fcfs")
    start(fleet, seeded(spark, rows_per_batch=500).select("event_time"), "clock", "sipped")
    eventually(lambda: sum(progress.rows()) == 2000, limit_s=60)
    assert max(progress.rows()) <= 500


@feature("sampled, Redis, Kafka and log sources of ours")
def test_sources_that_must_know_where_they_begin(spark: SparkSession) -> None:
    if HAS_READ_LIMITS:
        assert "sample" in seeded(spark, sampled=True).columns
        return
    with pytest.raises(UsageError, match=r"use 4\.[02] or newer"):
        seeded(spark, sampled=True)
    pytest.skip("Spark tells Python sources where a batch begins from 4.2 on")


@feature("approximate results")
def test_an_approximate_result_is_within_its_interval(
    spark: SparkSession, make_fleet: MakeFleet
) -> None:
    if find_spec("pandas") is None and not HAS_ARROW_UDFS:
        pytest.skip("pandas is not installed")
    fleet, _ = make_fleet("klink")
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    rows = rows.selectExpr("timestamp AS time", "timestamp AS arrived", "value")
    result = fleet.approximate(
        rows, time="time", window="2 seconds", aggregates={"n": "count()"}, arrival="arrived"
    )
    start(fleet, result.select("window.start", "n", "n_low", "n_high"), "clock", "about")
    eventually(lambda: spark.table("about").count() >= 3, limit_s=90)
    for row in spark.table("about").orderBy("start").collect()[1:]:  # the first is cut off
        assert row["n_low"] <= row["n"] <= row["n_high"]
        assert row["n"] == pytest.approx(400, rel=0.2)


@feature("the live page and recordings")
@QUICK
def test_a_fleet_is_watched_and_recorded(
    spark: SparkSession, make_fleet: MakeFleet, tmp_path: Path
) -> None:
    fleet, _ = make_fleet("klink")
    file, stop = tmp_path / "run.jsonl", threading.Event()
    start(fleet, counted_rate(spark, "1 second"), "clock", "seen")
    arguments = (fleet.socket, file, stop.is_set, lambda line: None)
    recorder = threading.Thread(target=recording.record, args=arguments)
    recorder.start()

    def kinds() -> Counter[str]:
        lines = file.read_text().splitlines() if file.exists() else []
        return Counter(json.loads(line)["kind"] for line in lines if line.endswith("}"))

    eventually(lambda: min(kinds()[k] for k in ("decision", "batch", "result")) > 1, limit_s=60)
    stop.set()
    recorder.join()
    watched = WatchedFleet(fleet.socket).ask()
    assert watched is not None
    assert [query.name for query in watched.queries] == ["seen"]


@feature("tuned session, its checkpoint manager")
@QUICK
def test_the_tuned_session_has_what_it_names(spark: SparkSession) -> None:
    key = "spark.sql.streaming.checkpointFileManagerClass"
    assert spark.conf.get(key) == checkpoint_file_manager()
    found = spark._jvm.java.lang.Class.forName(checkpoint_file_manager())  # type: ignore[union-attr]
    assert found.getSimpleName() == "FileSystemBasedCheckpointFileManager"
