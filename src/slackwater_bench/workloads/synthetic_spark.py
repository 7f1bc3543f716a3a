"""Synthetic pipelines on Spark."""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater_bench.workloads.synthetic import BLOCKING_CHANCE, BLOCKING_MS, WIDTH, Synthetic


def pipeline(query: Synthetic, rows: DataFrame) -> DataFrame:
    """The query on rows with a column ``id``: columns ``id`` and ``p``."""
    found = rows.select("id", F.rpad(F.md5(F.col("id").cast("string")), WIDTH, "-").alias("p"))
    for stage in query.stages:
        kept = (F.col("id") + stage.offset) % stage.modulus < stage.keep
        text = F.sha2(F.repeat(F.col("p"), stage.work), 512)
        if stage.blocks:
            text = F.concat(text, _blocking(query.seed + stage.modulus))
        found = found.where(kept).select("id", F.rpad(text, WIDTH, "-").alias("p"))
    return found


def _blocking(seed: int) -> Column:
    """An empty text that now and then takes long, as a call to a far service does."""
    wait = F.call_function(
        "reflect",
        F.lit("java.lang.Thread"),
        F.lit("sleep"),
        (F.rand(seed) * BLOCKING_MS).cast("bigint"),
    )
    return F.when(F.rand(seed + 1) < BLOCKING_CHANCE, F.substring(wait, 1, 0)).otherwise("")
