"""Queries that are stopped, started again, paused and let go, on real Spark."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core import UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskStatus, Status
from tests.engines.spark.test_fleet import NEVER, batches, gate_processes, rate
from tests.waiting import eventually

pytestmark = pytest.mark.spark


class Slow(StreamingQueryListener):
    """Takes a second an event, as one that writes to a database does."""

    def __init__(self) -> None:
        self.ended: set[str] = set()

    def onQueryStarted(self, event: object) -> None:
        pass

    def onQueryProgress(self, event: object) -> None:
        pass

    def onQueryTerminated(self, event: object) -> None:
        time.sleep(1)
        self.ended.add(str(event.runId))  # type: ignore[attr-defined]


@pytest.fixture
def slow(spark: SparkSession) -> Iterator[Slow]:
    listener = Slow()
    spark.streams.addListener(listener)
    yield listener
    spark.streams.removeListener(listener)


def noop(spark: SparkSession, checkpoint: Path | None = None) -> DataStreamWriter:
    writer = rate(spark).writeStream.format("noop")
    return writer if checkpoint is None else writer.option("checkpointLocation", str(checkpoint))


def state(fleet: Fleet, name: str) -> str:
    return next(q.state for q in fleet.status().queries if q.name == name)


def held(fleet: Fleet, name: str) -> None:
    eventually(lambda: state(fleet, name) == "held")


def test_a_late_end_of_the_last_run_does_not_end_the_next(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path, slow: Slow
) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    for _ in range(2):
        last = fleet.start(noop(spark, tmp_path / "c"), name="q")
        held(fleet, "q")
        run = last.runId
        last.stop()
        fleet.forget("q")
        query = fleet.start(noop(spark, tmp_path / "c"), name="q")
        eventually(lambda: run in slow.ended)  # noqa: B023
        assert not fleet.wait(0.5)
        held(fleet, "q")
        before = batches(query)
        time.sleep(0.5)
        assert batches(query) == before  # its gate is still on
        assert fleet.ended == set()
        query.stop()
        fleet.forget("q")


def test_a_late_end_does_not_undo_a_pause(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path, slow: Slow
) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    query = fleet.start(noop(spark, tmp_path / "c"), name="q")
    held(fleet, "q")
    run = query.runId
    fleet.pause("q")
    fleet.resume("q")
    eventually(lambda: run in slow.ended)
    assert not fleet.wait(0.5)
    held(fleet, "q")


def test_a_query_without_a_checkpoint_cannot_be_paused(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("fcfs")
    query = fleet.start(noop(spark), name="forgetful")
    eventually(lambda: batches(query) >= 0)
    with pytest.raises(UsageError, match="checkpointLocation") as caught:
        fleet.pause("forgetful")
    assert "\n" not in str(caught.value)
    assert query.isActive
    key = "spark.sql.streaming.checkpointLocation"
    spark.conf.set(key, str(tmp_path / "all"))
    try:
        named = fleet.start(noop(spark), name="named")
        unnamed = fleet.start(noop(spark))
        eventually(lambda: min(batches(named), batches(unnamed)) >= 0)
        for each in (named, unnamed):
            name = each.name or f"query-{each.id[:8]}"
            identity, reached = each.id, batches(each)
            fleet.pause(name)
            fleet.resume(name)
            eventually(lambda: batches(each) > reached)  # noqa: B023
            assert each.id == identity  # of the checkpoint
    finally:
        spark.conf.unset(key)


def test_one_handle_is_valid_over_restarts(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("fcfs")
    query = fleet.start(noop(spark, tmp_path / "c"), name="q")
    eventually(lambda: batches(query) >= 0)
    first = query.runId
    fleet.pause("q")
    assert not query.isActive
    assert query.awaitTermination(1) is False  # it will go on
    fleet.resume("q")
    assert query.runId != first
    assert query.isActive
    assert fleet.queries["q"].runId == query.runId
    eventually(lambda: query.lastProgress is not None)
    query.stop()
    assert not any(each.name == "q" for each in spark.streams.active)
    assert query.awaitTermination(30)
    assert query.exception() is None
    assert state(fleet, "q") == "stopped"
    assert fleet.wait(30)


def test_a_paused_query_that_is_stopped_does_not_go_on(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("fcfs")
    query = fleet.start(noop(spark, tmp_path / "c"), name="q")
    eventually(lambda: batches(query) >= 0)
    fleet.pause("q")
    query.stop()
    fleet.resume("q")
    assert not any(each.name == "q" for each in spark.streams.active)
    assert fleet.wait(30)
    assert state(fleet, "q") == "stopped"


@pytest.mark.parametrize("moment", ["at once", "held"])
def test_a_query_with_an_interval_goes_on_when_it_is_released(
    spark: SparkSession, make_fleet: Callable[..., Fleet], moment: str
) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    busy = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    writer = busy.writeStream.format("noop").trigger(processingTime="1 second")
    query = fleet.start(writer, name="q")
    if moment == "held":
        held(fleet, "q")
    fleet.release("q")
    assert fleet.status().queries == ()
    try:
        eventually(lambda: batches(query) >= 3)
        starts = [p.timestamp[:19] for p in query.recentProgress if p.numInputRows]
        assert len(set(starts[1:])) == len(starts[1:])  # one a second, after the first
    finally:
        query.stop()


def test_queries_of_others_are_left_alone(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    """Those that a user starts at the moment when the fleet starts some without names."""
    fleet = make_fleet(NEVER, max_wait=600)
    ours: list[str] = []
    theirs: list[object] = []

    def start_ours() -> None:
        for _ in range(3):
            ours.append(fleet.start(noop(spark)).runId)

    def start_theirs() -> None:
        for _ in range(6):
            theirs.append(noop(spark).start())

    threads = [threading.Thread(target=each) for each in (start_ours, start_ours, start_theirs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    try:
        eventually(lambda: all(batches(query) >= 1 for query in theirs), 60)
        assert {query.runId for query in fleet.queries.values()} == set(ours)
        assert {q.state for q in fleet.status().queries} <= {"held", "starting"}
        assert len(fleet.status().queries) == 6
    finally:
        for query in theirs:
            query.stop()  # type: ignore[attr-defined]


def test_a_query_without_a_checkpoint_reads_nothing_twice_when_it_is_started_again(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    folder = tmp_path / "rows"
    folder.mkdir()
    for part in range(3):
        (folder / f"{part}.csv").write_text("".join(f"{part * 10 + row}\n" for row in range(10)))
    seen: list[int] = []

    def collect(batch: DataFrame, _number: int) -> None:
        seen.extend(row.value for row in batch.collect())

    fleet = make_fleet("fcfs", gate="source")
    rows = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1).csv(str(folder))
    query = fleet.start(fleet.gate(rows, "q").writeStream.foreachBatch(collect), name="q")
    eventually(lambda: len(seen) == 30, 60)
    for process in gate_processes():
        process.kill()
    eventually(lambda: fleet.status().queries[0].restarts == 1, 60)
    assert fleet.wait_ready(60)
    query.processAllAvailable()
    assert sorted(seen) == list(range(30))


def test_a_query_is_held_once(spark: SparkSession, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet("fcfs")
    query = noop(spark).start()
    try:
        fleet.hold(query, name="one")
        with pytest.raises(UsageError, match="as 'one'"):
            fleet.hold(query, name="two")
    finally:
        query.stop()


def test_a_query_that_was_forgotten_is_not_shown_to_watchers(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    def watched() -> list[str]:
        return [each.spec.name for each in ask(fleet.socket, AskStatus(), Status).queries]

    fleet = make_fleet(NEVER, max_wait=600)
    query = noop(spark).queryName("mine").start()
    fleet.hold(query)
    eventually(lambda: watched() == ["mine"])
    query.stop()
    fleet.forget("mine")
    eventually(lambda: watched() == [])
