"""Fleets on real Spark, behind both gates."""

import contextlib
import os
import signal
from collections import Counter
from collections.abc import Callable
from functools import reduce
from pathlib import Path

import psutil
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core import Admission, SlackwaterError, UsageError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import instant_s
from slackwater.ipc.client import ask
from slackwater.ipc.questions import AskStatus, AskWatch, Control, Controlled, Status, Watched
from slackwater.policies import Policy
from slackwater.traffic import Traffic
from slackwater_bench.workloads.ysb import Ysb
from tests.waiting import eventually

pytestmark = pytest.mark.spark

FILES = 4
ROWS = 40  # of a file


class Never(Policy):
    """Admits nobody: only the bounds of the gates let a query through."""

    name = "never"

    def decide(self, snapshot):  # type: ignore[no-untyped-def]
        from slackwater.core import Schedule

        return Schedule()

    def _rank(self, waiting, snapshot) -> list[Admission]:  # type: ignore[no-untyped-def]
        return []


NEVER = "tests.engines.spark.test_fleet:Never"


@pytest.fixture(scope="module")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files of events, one second of event time each; with one file a trigger, several batches."""
    folder = tmp_path_factory.mktemp("events")
    for number in range(FILES):
        lines = [
            f"{1_700_000_000 + number * 2 + row / ROWS:.3f},{row % 4},{number * ROWS + row}"
            for row in range(ROWS)
        ]
        path = folder / f"{number}.csv"
        path.write_text("\n".join(lines) + "\n")
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    return folder


def read(spark: SparkSession, events: Path) -> DataFrame:
    return (
        spark.readStream.schema("t double, key int, value long")
        .option("maxFilesPerTrigger", 1)
        .csv(str(events))
        .withColumn("time", F.timestamp_millis((F.col("t") * 1000).cast("long")))
        .withWatermark("time", "1 second")
    )


def windowed(frame: DataFrame) -> DataFrame:
    return (
        frame.groupBy(F.window("time", "2 seconds"), "key")
        .agg(F.sum("value").alias("total"))
        .select(F.unix_millis("window.end").alias("end"), "key", "total")
    )


def chained(frame: DataFrame) -> DataFrame:
    inner = frame.groupBy(F.window("time", "2 seconds"), "key").count()
    outer = inner.groupBy(F.window(F.window_time("window"), "4 seconds")).agg(F.sum("count"))
    return outer.select(F.unix_millis("window.end").alias("end"), F.col("sum(count)"))


def joined(frame: DataFrame) -> DataFrame:
    right = frame.select(F.col("time").alias("time2"), F.col("value").alias("value2"))
    same = (F.col("value") == F.col("value2")) & (F.col("time2") <= F.col("time"))
    near = F.col("time2") >= F.col("time") - F.expr("INTERVAL 1 SECOND")
    return frame.join(right, same & near).select("key", "value")


def passed(frame: DataFrame) -> DataFrame:
    return frame.select("key", "value")


def running_total(frame: DataFrame) -> DataFrame:
    return frame.groupBy("key").agg(F.sum("value").alias("total"))


SHAPES = {
    "passed-append": (passed, "append"),
    "windowed-append": (windowed, "append"),
    "windowed-update": (windowed, "update"),
    "total-complete": (running_total, "complete"),
    "chained-append": (chained, "append"),
    "joined-append": (joined, "append"),
}


def rows_of(spark: SparkSession, name: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(row) for row in spark.table(name).collect())


@pytest.fixture(scope="module")
def plain(spark: SparkSession, events: Path) -> dict[str, Counter[tuple[object, ...]]]:
    """What plain Spark gives for every shape."""
    queries = []
    for shape, (build, mode) in SHAPES.items():
        name = "plain_" + shape.replace("-", "_")
        frame = build(read(spark, events))
        queries.append(frame.writeStream.queryName(name).format("memory").outputMode(mode).start())
    for query in queries:
        query.processAllAvailable()
        query.stop()
    found = {s: rows_of(spark, "plain_" + s.replace("-", "_")) for s in SHAPES}
    assert all(found.values())
    return found


@pytest.mark.parametrize("gate", ["clock", "source"])
def test_every_shape_gives_what_plain_spark_gives(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    events: Path,
    plain: dict[str, Counter[tuple[object, ...]]],
    gate: str,
) -> None:
    fleet = make_fleet("round-robin", gate=gate, slots=2)
    names = {shape: f"{gate}_{shape.replace('-', '_')}" for shape in SHAPES}
    for shape, (build, mode) in SHAPES.items():
        frame = build(read(spark, events))
        if gate == "source":
            frame = fleet.gate(frame, names[shape])
        fleet.start(frame.writeStream.format("memory").outputMode(mode), name=names[shape])
    # A query whose Python process did not come up in time is started again: ask for it afterwards.
    assert fleet.wait_ready(240)
    for name in names.values():
        fleet.queries[name].processAllAvailable()
    assert {shape: rows_of(spark, name) for shape, name in names.items()} == plain
    status = fleet.status()
    assert {q.gate for q in status.queries} == {gate}
    assert [q.name for q in status.queries] == list(names.values())
    assert "round-robin" in status._repr_html_()
    assert fleet.explain(last=5)


def rate(spark: SparkSession, rows: int = 20) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", rows).load()


def batches(query: object) -> int:
    progress = query.lastProgress  # type: ignore[attr-defined]
    return -1 if progress is None else progress.batchId


def test_a_query_starts_held_and_off_lets_it_go(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    query = fleet.start(rate(spark).writeStream.format("noop"), name="held")
    eventually(lambda: fleet.status().queries[0].state == "held")
    assert batches(query) == -1  # not even its first micro-batch
    fleet.off()
    eventually(lambda: batches(query) >= 2)
    fleet.on()
    eventually(lambda: fleet.status().queries[0].state == "held")


def test_a_held_query_stops_at_once(spark: SparkSession, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    query = fleet.start(rate(spark).writeStream.format("noop"), name="held")
    eventually(lambda: fleet.status().queries[0].state == "held")
    query.stop()  # would hang until the test's time limit if the gate did not let go
    assert query.exception() is None
    eventually(lambda: fleet.status().queries[0].state == "stopped")


def test_no_trigger_waits_longer_than_its_maximum(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(NEVER, max_wait=0.2)
    query = fleet.start(rate(spark).writeStream.format("noop"), name="bounded")
    eventually(lambda: batches(query) >= 3)


def test_a_running_query_is_held_with_what_is_stated_of_it(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    """Its trigger's interval stays, and is known: results can come no sooner."""
    fleet = make_fleet("fcfs")
    rows = spark.readStream.format("rate").load()
    query = rows.writeStream.format("noop").trigger(processingTime="1 second").start()
    fleet.hold(query, name="held", target="2 seconds", priority=3)
    record = fleet._registry.get("held")
    assert record is not None
    spec = record.spec
    assert (spec.trigger_s, spec.target_s, spec.priority) == (1.0, 2.0, 3.0)
    (status,) = fleet.status().queries
    assert status.target_s == 2.0
    query.stop()


def test_running_queries_are_taken_over_and_given_back(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    writer = rate(spark).writeStream.format("noop").queryName("adopted")
    query = writer.option("checkpointLocation", str(tmp_path / "c")).start()
    eventually(lambda: batches(query) >= 1)
    fleet = make_fleet(NEVER, max_wait=600)
    fleet.hold(query)
    eventually(lambda: fleet.status().queries[0].state == "held")
    held_at = batches(query)
    fleet.release("adopted")
    eventually(lambda: batches(query) > held_at)
    query.stop()
    assert query.exception() is None


def test_the_user_s_own_interval_is_kept(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs")
    always_busy = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    writer = always_busy.writeStream.format("noop").trigger(processingTime="2 seconds")
    query = fleet.start(writer, name="slow")
    eventually(lambda: batches(query) >= 3)
    # Spark's rule, also when it is late: at most one trigger between two even seconds.
    starts = [instant_s(p.timestamp) for p in query.recentProgress if p.numInputRows]
    assert len({start // 2 for start in starts}) == len(starts)
    row = fleet.status().queries[0]
    assert (row.kept or 0) + (row.broken or 0) > 0  # and it is counted whether it was kept


def test_several_triggers_cannot_be_held_by_the_clock(
    spark: SparkSession, make_fleet: Callable[..., Fleet], events: Path
) -> None:
    fleet = make_fleet("fcfs")
    writer = passed(read(spark, events)).writeStream.format("noop").trigger(availableNow=True)
    query = fleet.start(writer, name="once")
    assert query.awaitTermination(60)  # runs unheld
    assert query.exception() is None


def test_a_hanging_controller_does_not_hold_queries(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    clock = fleet.start(rate(spark).writeStream.format("noop"), name="clock")
    gated = fleet.gate(rate(spark), "source")
    source = fleet.start(gated.writeStream.format("noop"), name="source")
    eventually(lambda: {q.state for q in fleet.status().queries} == {"held"}, limit_s=60)
    assert fleet.controller_pid is not None
    os.kill(fleet.controller_pid, signal.SIGSTOP)
    try:
        eventually(lambda: min(batches(clock), batches(source)) >= 2, limit_s=60)
        assert "off" in fleet.status().controller
    finally:
        os.kill(fleet.controller_pid, signal.SIGCONT)
    eventually(lambda: {q.state for q in fleet.status().queries} == {"held"}, limit_s=60)


def test_a_killed_controller_comes_back(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet(NEVER, max_wait=600)
    query = fleet.start(rate(spark).writeStream.format("noop"), name="q")
    eventually(lambda: fleet.status().queries[0].state == "held")
    assert fleet.controller_pid is not None
    os.kill(fleet.controller_pid, signal.SIGKILL)
    eventually(lambda: batches(query) >= 0)  # open while nobody controls
    eventually(lambda: fleet.status().queries[0].state == "held")


def gate_processes() -> list[psutil.Process]:
    """Python processes of streaming sources below this one."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # zombies included
            if "python_streaming_source_runner" in " ".join(process.cmdline()):
                found.append(process)
    return found


def test_a_killed_gate_process_brings_its_query_back(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    events: Path,
    tmp_path: Path,
    plain: dict[str, Counter[tuple[object, ...]]],
) -> None:
    fleet = make_fleet(NEVER, gate="source", max_wait=600)
    frame = fleet.gate(windowed(read(spark, events)), "phoenix")
    writer = frame.writeStream.format("parquet").option("path", str(tmp_path / "out"))
    writer = writer.option("checkpointLocation", str(tmp_path / "c")).outputMode("append")
    fleet.start(writer, name="phoenix")
    eventually(lambda: fleet.status().queries[0].state == "held", limit_s=60)
    for process in gate_processes():
        process.kill()
    eventually(lambda: fleet.status().queries[0].restarts == 1, limit_s=60)
    eventually(lambda: fleet.status().queries[0].state == "held", limit_s=60)
    fleet.off()
    fleet.queries["phoenix"].processAllAvailable()
    found = Counter(tuple(row) for row in spark.read.parquet(str(tmp_path / "out")).collect())
    assert found == plain["windowed-append"]
    assert fleet.failures == {}


def test_a_failing_query_leaves_the_others_alone(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs")
    good = fleet.start(rate(spark).writeStream.format("noop"), name="good")
    broken = rate(spark).select(F.raise_error(F.lit("boom")).alias("x"))
    fleet.start(broken.writeStream.format("noop"), name="bad")
    eventually(lambda: "bad" in fleet.failures, limit_s=60)
    before = batches(good)
    eventually(lambda: batches(good) > before + 1)
    assert [q.state for q in fleet.status().queries if q.name == "bad"] == ["failed"]


def test_every_batch_is_told_once_also_of_a_query_that_fails_or_is_taken_over(
    spark: SparkSession, make_fleet: Callable[..., Fleet], events: Path
) -> None:
    fleet, told = make_fleet(), []
    fleet.on_progress(lambda name, progress: told.append((name, progress["timestamp"])))

    def refuse_the_third(rows: DataFrame, number: int) -> None:
        if number == 2:
            raise ValueError("no third batch")

    fleet.start(read(spark, events).writeStream.foreachBatch(refuse_the_third), name="fails")
    rates = spark.readStream.format("rate").load().writeStream.format("noop")
    unheld = rates.queryName("runs").start()
    eventually(lambda: unheld.lastProgress is not None)
    fleet.hold(unheld)
    eventually(lambda: "fails" in fleet.failures, limit_s=60)
    eventually(lambda: len({at for name, at in told if name == "runs"}) > 3, limit_s=60)
    assert {name for name, _ in told} == {"fails", "runs"}
    assert [one for one, times in Counter(told).items() if times > 1] == []
    unheld.stop()


def test_a_query_that_has_ended_gives_its_name_to_the_next(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs")
    broken = rate(spark).select(F.raise_error(F.lit("boom")).alias("x"))
    fleet.start(broken.writeStream.format("noop"), name="q")
    eventually(lambda: "q" in fleet.failures, limit_s=60)
    for _ in range(2):
        query = fleet.start(rate(spark).writeStream.format("noop"), name="q")
        eventually(lambda query=query: batches(query) > 1, limit_s=60)  # type: ignore[misc]
        assert fleet.failures == {}
        assert [q.state for q in fleet.status().queries if q.name == "q"] != ["failed"]
        query.stop()


def test_a_raising_sink_is_told_with_its_own_error(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    def parse(batch: DataFrame, number: int) -> None:
        raise ValueError("cannot parse row 2000")

    fleet = make_fleet("fcfs")
    fleet.start(rate(spark).writeStream.foreachBatch(parse), name="bad")
    eventually(lambda: "bad" in fleet.failures, limit_s=60)
    assert fleet.failures == {"bad": "ValueError: cannot parse row 2000"}
    assert "ValueError: cannot parse row 2000" in str(fleet.status())


def test_the_controller_can_be_a_thread(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs", controller="thread")
    query = fleet.start(rate(spark).writeStream.format("noop"), name="q")
    eventually(lambda: batches(query) >= 2)
    assert fleet.controller_pid is None
    assert fleet.controller_cpu_s() > 0


def test_a_dry_run_decides_and_holds_nothing(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs", dry_run=True, slots=1)
    queries = [fleet.start(rate(spark).writeStream.format("noop"), name=f"q{i}") for i in range(2)]
    eventually(lambda: min(batches(q) for q in queries) >= 2)
    eventually(lambda: bool(fleet.explain()))
    assert not any(decision["enforced"] for decision in fleet.explain())


def test_deadlines_are_discovered(
    spark: SparkSession, make_fleet: Callable[..., Fleet], events: Path
) -> None:
    fleet = make_fleet("fcfs")
    fleet.start(windowed(read(spark, events)).writeStream.format("noop"), name="w")
    eventually(lambda: bool(ask(fleet.socket, AskStatus(), Status).queries))
    deadlines = ask(fleet.socket, AskStatus(), Status).queries[0].spec.deadlines
    (window,) = deadlines.windows
    assert (window.kind, window.size_s) == ("tumbling", 2.0)
    assert deadlines.inputs[0].watermark_delay_s == 1.0


class Sips(Policy):
    """Lets queries read a few rows at a time."""

    name = "sips"

    def _rank(self, waiting, snapshot):  # type: ignore[no-untyped-def]
        return (Admission(q.name, "a sip", row_limit=250) for q in waiting)


def test_a_policy_limits_the_rows_of_each_batch(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("tests.engines.spark.test_fleet:Sips")
    traffic = Traffic(start_s=1.7e9, stop_s=1.7e9 + 3, rate="1000", seed=5)
    frame = Ysb(traffic=traffic).query(spark)
    query = fleet.start(frame.writeStream.format("noop"), name="sipping")
    eventually(lambda: sum(p.numInputRows for p in query.recentProgress) == 3000, limit_s=90)
    sizes = [p.numInputRows for p in query.recentProgress if p.numInputRows]
    assert max(sizes) <= 250
    assert len(sizes) >= 12


def test_auto_says_which_gate_and_why(make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet("fcfs")
    assert fleet.gate_kind == "clock"
    assert "has what it needs" in fleet.gate_reason


def test_wrong_usage_is_told_in_one_line(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs")
    running = fleet.start(rate(spark).writeStream.format("noop"), name="q")
    for mistake in (
        lambda: Fleet(spark, "fcsf"),
        lambda: Fleet(spark, slots=0),
        lambda: Fleet(spark, gate="door"),  # type: ignore[arg-type]
        lambda: Fleet(spark, max_wait=-1),
        lambda: Fleet(spark, max_wait="soon"),
        lambda: fleet.start(rate(spark)),  # type: ignore[arg-type]
        lambda: fleet.start(running),  # type: ignore[arg-type]
        lambda: fleet.start("q"),  # type: ignore[arg-type]
        lambda: fleet.start(rate(spark).writeStream.format("noop"), name="p", target=0),
        lambda: fleet.start(rate(spark).writeStream.format("noop"), name="p", idle_after="soon"),
        lambda: fleet.start(rate(spark).writeStream.format("noop"), name="q"),
        lambda: fleet.start(rate(spark).writeStream.format("noop"), name="p", priority=-1),
        lambda: fleet.gate(spark.range(3), "batch"),
        lambda: fleet.explain(100_000),
        lambda: fleet.explain(-1),
        lambda: fleet.explain(query="nope"),
        lambda: fleet.gate(reduce(DataFrame.union, [rate(spark) for _ in range(4)]), "wide"),
    ):
        with pytest.raises(UsageError) as caught:
            mistake()
        assert "\n" not in str(caught.value)


def test_durations_may_be_texts(spark: SparkSession, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet("fcfs", max_wait="1 minute")
    assert fleet.max_wait == 60.0
    writer = rate(spark).writeStream.format("noop")
    fleet.start(writer, name="q", max_wait="2 seconds", target="1500ms")
    eventually(lambda: bool(ask(fleet.socket, AskStatus(), Status).queries))
    spec = ask(fleet.socket, AskStatus(), Status).queries[0].spec
    assert (spec.max_wait_s, spec.target_s) == (2.0, 1.5)


def test_a_fleet_that_was_stopped_starts_nothing(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs")
    fleet.stop()
    with pytest.raises(UsageError, match="has been stopped: make another Fleet"):
        fleet.start(rate(spark).writeStream.format("noop"), name="late")


def test_looks_that_spark_reports_are_no_batches(
    spark: SparkSession,
    make_fleet: Callable[..., Fleet],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    setting = "spark.sql.streaming.noDataProgressEventInterval"
    spark.conf.set(setting, "0")
    try:
        fleet = make_fleet("klink")
        assert f"{setting} is 0" in caplog.text
        frame = spark.readStream.schema("value long").csv(str(tmp_path))
        query = fleet.start(frame.writeStream.format("noop"), name="q")
        eventually(lambda: len(query.recentProgress) >= 3, limit_s=60)  # looks without a file
        (tmp_path / "a.csv").write_text("1\n2\n")
        eventually(lambda: fleet.status().queries[0].rows == 2, limit_s=60)
        assert fleet.status().queries[0].batches == 1
    finally:
        spark.conf.unset(setting)


def test_the_socket_goes_with_the_fleet(make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet("fcfs")
    assert fleet.socket.exists()
    fleet.stop()
    eventually(lambda: not fleet.socket.exists())
    with pytest.raises(SlackwaterError):
        fleet.explain()


def test_a_query_is_paused_and_goes_on_from_its_checkpoint(
    spark: SparkSession, make_fleet: Callable[..., Fleet], events: Path, tmp_path: Path
) -> None:
    fleet = make_fleet("fcfs")
    writer = passed(read(spark, events)).writeStream.format("parquet")
    writer = writer.option("path", str(tmp_path / "out"))
    query = fleet.start(writer.option("checkpointLocation", str(tmp_path / "c")), name="q")
    other = fleet.start(rate(spark).writeStream.format("noop"), name="other")
    fleet.queries["q"].processAllAvailable()
    fleet.pause("q")
    assert not query.isActive
    assert other.isActive
    assert {q.name: q.state for q in fleet.status().queries}["q"] == "paused"
    assert not fleet.wait(0)  # it has not ended
    fleet.resume("q")
    assert fleet.wait_ready(60)
    fleet.queries["q"].processAllAvailable()
    assert spark.read.parquet(str(tmp_path / "out")).count() == FILES * ROWS
    with pytest.raises(UsageError, match="no query named"):
        fleet.pause("nobody")


def test_what_the_controller_is_told_reaches_the_fleet(
    spark: SparkSession, make_fleet: Callable[..., Fleet], tmp_path: Path
) -> None:
    fleet = make_fleet("fcfs")
    writer = rate(spark).writeStream.format("noop")
    writer = writer.option("checkpointLocation", str(tmp_path / "c"))
    fleet.start(writer, name="q", target=2.0)

    def watched() -> Watched:
        return ask(fleet.socket, AskWatch(), Watched)

    eventually(lambda: "q" in watched().notes)
    assert watched().app_name == "slackwater-tests"
    fleet.switch("klink")
    eventually(lambda: fleet.policy == "klink")
    with pytest.raises(UsageError, match="unknown policy"):
        fleet.switch("kling")
    assert fleet.controller_pid is not None
    os.kill(fleet.controller_pid, signal.SIGKILL)  # the next one has the new policy, too

    def policy() -> object:
        with contextlib.suppress(SlackwaterError):
            return watched().policy, bool(watched().queries)
        return None

    eventually(lambda: policy() == ("klink", True))
    ask(fleet.socket, Control(action="pause", query="q"), Controlled)
    eventually(lambda: fleet.status().queries[0].state == "paused")
    ask(fleet.socket, Control(action="resume", query="q"), Controlled)
    eventually(lambda: fleet.status().queries[0].state in ("held", "running"), 60)


def test_a_query_shows_itself_in_a_notebook(
    spark: SparkSession, make_fleet: Callable[..., Fleet]
) -> None:
    fleet = make_fleet("fcfs")
    query = fleet.start(rate(spark).writeStream.format("noop"), name="shown")
    fleet.start(rate(spark).writeStream.format("noop"), name="another")
    html = query._repr_html_()  # type: ignore[attr-defined]
    assert "shown" in html
    assert "another" not in html
    assert "another" in fleet._repr_html_()
