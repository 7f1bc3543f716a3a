"""The queries of the fleet: plain Structured Streaming. Replace ``clicks`` by your own source."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def clicks(spark: SparkSession) -> DataFrame:
    """Make up 500 rows a second with a time, a page and how long it took to load."""
    rows = spark.readStream.format("rate").option("rowsPerSecond", 500).load()
    page = F.concat(F.lit("/page/"), F.col("value") % 7)
    took_ms = F.pmod(F.hash("value"), F.lit(500))
    named = rows.select(F.col("timestamp").alias("at"), page.alias("page"), took_ms.alias("ms"))
    return named.withWatermark("at", "1 second")  # rows may be so late


def visits(spark: SparkSession) -> DataFrame:
    return clicks(spark).groupBy(F.window("at", "5 seconds")).count()


def by_page(spark: SparkSession) -> DataFrame:
    grouped = clicks(spark).groupBy(F.window("at", "10 seconds"), "page")
    return grouped.agg(F.count("*").alias("visits"), F.avg("ms").alias("ms"))


def slow_pages(spark: SparkSession, above_ms: int) -> DataFrame:
    slow = clicks(spark).where(F.col("ms") > above_ms)
    return slow.groupBy(F.window("at", "10 seconds", "5 seconds"), "page").count()
