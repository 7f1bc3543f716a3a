"""Runs one query on a source of Spark's own until it has caught up."""

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater import policies
from slackwater.core.clock import RealClock
from slackwater.core.errors import EngineError
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.session.session import session
from slackwater_bench.kafka_broker import KafkaBroker, connector_jars
from slackwater_bench.klink.backlog import BacklogTrial
from slackwater_bench.trial import Result

WINDOW_S = 10
TOPIC, PARTITIONS = "events", 2
_POLL_S = 0.5
_FLUSH_S = 60.0


def run(trial: BacklogTrial) -> Result:
    """Let the query catch up and count the rows of every window."""
    conf = {"spark.driver.memory": trial.heap, "spark.sql.shuffle.partitions": "2"}
    if trial.source == "kafka":
        conf["spark.jars"] = ",".join(connector_jars())
    spark = session("slackwater-bench", "local[2]", conf=conf)
    spark.sparkContext.setLogLevel("ERROR")
    gated = policies.load(trial.policy).gated
    with ExitStack() as stack:
        # Stores of state are looked after for a while after queries have ended.
        kept = tempfile.TemporaryDirectory(prefix="slackwater-bench-", ignore_cleanup_errors=True)
        folder = Path(stack.enter_context(kept))
        begin_s = (int(RealClock().now() - trial.backlog_s) // WINDOW_S) * WINDOW_S
        rows = _BACKLOGS[trial.source](spark, folder, trial, begin_s, stack)
        fleet = stack.enter_context(Fleet(spark, trial.policy, gate="auto" if gated else "none"))
        return _CatchUp(trial, spark, fleet, begin_s).result(rows, folder)


class _CatchUp:
    """One query that is behind."""

    def __init__(
        self, trial: BacklogTrial, spark: SparkSession, fleet: Fleet, begin_s: int
    ) -> None:
        self._trial = trial
        self._spark = spark
        self._fleet = fleet
        self._first_s = begin_s + WINDOW_S  # the rate source begins within a window
        self._last_s = begin_s + int(trial.backlog_s) - 3 * WINDOW_S  # and files end somewhere
        self._clock = RealClock()
        self._batches: list[int] = []
        fleet.on_progress(self._take)

    def _take(self, name: str, progress: dict[str, Any]) -> None:
        if progress["numInputRows"]:
            self._batches.append(progress["numInputRows"])

    def result(self, rows: DataFrame, folder: Path) -> Result:
        """Start it and wait."""
        began_s = self._clock.monotonic()
        writer = _query(rows).writeStream.format("memory").outputMode("append")
        checkpoint = str(folder / "checkpoint")
        query = self._fleet.start(
            writer.option("checkpointLocation", checkpoint), name="behind", in_pieces=True
        )
        while not (found := self._windows()) or max(found) < self._last_s:
            if not query.isActive:
                raise EngineError(str(query.exception()))
            if self._clock.monotonic() > began_s + self._trial.seconds:
                raise EngineError(f"not caught up: {sum(self._batches):,} rows read")
            self._clock.sleep(_POLL_S)
        took_s = self._clock.monotonic() - began_s
        wanted = range(self._first_s + WINDOW_S, self._last_s + 1, WINDOW_S)
        wrong = sum(found.get(end_s) != WINDOW_S * self._trial.rate for end_s in wanted)
        return {
            "batches": len(self._batches),
            "largest_rows": max(self._batches),
            "caught_up_s": round(took_s, 1),
            "windows": len(wanted),
            "wrong": wrong,
        }

    def _windows(self) -> dict[int, int]:
        """Return the events of each window that has come, by its end."""
        return {row["end_s"]: row["events"] for row in self._spark.table("behind").collect()}


def _ticks(
    spark: SparkSession, folder: Path, trial: BacklogTrial, begin_s: int, stack: ExitStack
) -> DataFrame:
    """Let Spark's rate source have begun long ago."""
    place = folder / "checkpoint" / "sources" / "0"
    place.mkdir(parents=True)
    (place / "0").write_text(f"v1\n{1000 * begin_s}")  # when the source was made
    ticks = spark.readStream.format("rate").option("rowsPerSecond", trial.rate).load()
    return ticks.withColumnRenamed("timestamp", "at")


def _files(
    spark: SparkSession, folder: Path, trial: BacklogTrial, begin_s: int, stack: ExitStack
) -> DataFrame:
    """Write a file for each second."""
    files = folder / "files"
    files.mkdir()
    for second in range(int(trial.backlog_s)):
        _write(files / f"{second}.parquet", begin_s + second, second * trial.rate, trial.rate)
    return spark.readStream.schema("at timestamp, value long").parquet(str(files))


def _topic(
    spark: SparkSession, folder: Path, trial: BacklogTrial, begin_s: int, stack: ExitStack
) -> DataFrame:
    """Write the rows of each second into two partitions of a real broker, with their time."""
    (folder / "kafka").mkdir()
    broker = KafkaBroker(folder / "kafka")
    stack.callback(broker.stop)
    broker.create(TOPIC, PARTITIONS)
    producer = broker.producer(**{"linger.ms": "50", "queue.buffering.max.messages": "1000000"})
    for second in range(int(trial.backlog_s)):
        for place in range(trial.rate):
            producer.produce(
                TOPIC,
                str(second * trial.rate + place),
                partition=place % PARTITIONS,
                timestamp=1000 * (begin_s + second),
            )
        producer.poll(0)
    if producer.flush(_FLUSH_S):
        raise EngineError("the Kafka broker does not take the backlog")
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", broker.address)
    rows = reader.option("subscribe", TOPIC).option("startingOffsets", "earliest").load()
    return rows.select(F.col("timestamp").alias("at"), F.col("value").cast("string").cast("long"))


# The events that wait, with columns ``at`` and ``value``, by source.
_BACKLOGS = {"files": _files, "rate": _ticks, "kafka": _topic}


def _write(path: Path, at_s: int, first: int, rows: int) -> None:
    """Write the events of one second."""
    times = pa.array([1_000_000 * at_s] * rows, pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"at": times, "value": range(first, first + rows)}), path)
    os.utime(path, (at_s, at_s))  # the order in which Spark reads them


def _query(rows: DataFrame) -> DataFrame:
    """Count events by a key of their own, and these by window."""
    keys = rows.select("at", F.sha2(F.col("value").cast("string"), 512).alias("key"))
    window = F.window("at", f"{WINDOW_S} seconds").alias("window")
    groups = keys.withWatermark("at", "1 second").groupBy(window, "key").count()
    # Without a condition on the groups Spark folds the two aggregates into one.
    whole = (
        groups.where(F.col("count") < 10**9).groupBy("window").agg(F.sum("count").alias("events"))
    )
    return whole.select(F.unix_timestamp("window.end").alias("end_s"), "events")
