"""The Yahoo Streaming Benchmark in two queries with a log between them, for a fleet file.

The first filters views and looks their campaigns up, the second counts them by window. They may
run on different workers.
"""

import json
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.clock import RealClock
from slackwater.engines.spark.sources.feed import load_feed
from slackwater.engines.spark.sources.query_log import await_log, read_log, write_log
from slackwater.traffic import Traffic
from slackwater_bench.workloads.ysb import Ysb


class SplitYsb(Ysb):
    """YSB, each half by itself."""

    def views(self, spark: SparkSession) -> DataFrame:
        """Return the first half; its watermark shows how far it is."""
        prepared = self._prepared(load_feed(spark, self.feed_options()))
        return prepared.withWatermark("event_time", f"{self.watermark_ms} milliseconds")

    def counts(self, views: DataFrame) -> DataFrame:
        """Return the second half."""
        marked = views.withWatermark("event_time", f"{self.watermark_ms} milliseconds")
        window = self.windows.column("event_time").alias("window")
        counted = marked.groupBy(window, "campaign_id").count()
        return counted.select(F.unix_micros("window.end").alias("end_us"), *self.columns)


def workload(*, seed: int, start: float, rate: str, phase: float = 0.0) -> SplitYsb:
    """Return both halves, and the truth."""
    traffic = Traffic(start_s=start, rate=rate, delays="uniform:0:300ms", seed=seed)
    return SplitYsb(traffic=traffic, phase_s=phase)


def views(
    spark: SparkSession, *, folder: str, seed: int, start: float, rate: str, phase: float = 0.0
) -> DataStreamWriter:
    """Write the first half into a log."""
    split = workload(seed=seed, start=start, rate=rate, phase=phase)
    return write_log(split.views(spark).select("campaign_id", "event_time"), folder)


def counts(
    spark: SparkSession,
    *,
    folder: str,
    out: str,
    seed: int,
    start: float,
    rate: str,
    phase: float = 0.0,
) -> DataStreamWriter:
    """Read the log and write a line of JSON for each batch with results: when, and which."""
    await_log(folder)
    split = workload(seed=seed, start=start, rate=rate, phase=phase)

    def write(batch: DataFrame, number: int) -> None:
        rows = batch.toArrow().to_pylist()
        if rows:
            with Path(out).open("a") as file:
                file.write(
                    json.dumps({"at_s": RealClock().now(), "rows": [[*r.values()] for r in rows]})
                )
                file.write("\n")

    return split.counts(read_log(spark, folder)).writeStream.foreachBatch(write)
