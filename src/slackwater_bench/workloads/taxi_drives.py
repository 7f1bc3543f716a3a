"""Taxi Drives: two streams of drives, joined by a union, into two CPU-heavy queries.

The application of the Stream-Economics evaluation, as functions for a fleet file: each task is a
streaming query, and logs lie between them. The second query has two instances.
"""

from collections.abc import Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.engines.spark.sources.feed import load_feed
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.query_log import await_log, read_log, write_log
from slackwater.traffic import Traffic
from slackwater_bench.workloads.knn import Knn

GENERATOR = "slackwater_bench.workloads.nyc_taxi_trips:NycTaxiTrips"


def source(
    spark: SparkSession,
    *,
    folder: str,
    rate: str,
    start: float,
    seed: int,
    stop: float | None = None,
) -> DataStreamWriter:
    """Return a stream of drives into a log; rows that no query wants are shed here."""
    traffic = Traffic(start_s=start, stop_s=stop, rate=rate, seed=seed, delays="constant:0ms")
    options = FeedOptions(traffic=traffic, generator=GENERATOR, sheddable=True)
    drives = load_feed(spark, options)
    wanted = drives.select(
        F.col("dropoff_datetime").alias("event_time"),
        F.col("pickup_longitude").alias("x"),
        F.col("pickup_latitude").alias("y"),
    )
    return write_log(wanted, folder)


def sink(
    spark: SparkSession,
    *,
    folders: Sequence[str],
    number: int = 0,
    of: int = 1,
    references: int = 200,
    wait_s: float = 60.0,
) -> DataFrame:
    """Return drives of both streams, labelled by reference points near their start."""
    for folder in folders:
        await_log(folder, wait_s)
    rows = read_log(spark, list(folders), instance=(number, of), sheddable=True)
    return Knn(traffic=Traffic(start_s=0.0), references=references).labelled(rows)


def knn(
    spark: SparkSession, *, rate: str, start: float, seed: int, references: int = 200
) -> DataFrame:
    """Return the other application: one query of its own."""
    traffic = Traffic(start_s=start, rate=rate, seed=seed, delays="constant:0ms")
    return Knn(traffic=traffic, references=references).query(spark)
