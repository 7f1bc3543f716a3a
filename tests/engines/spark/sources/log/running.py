"""Queries that copy a source to files, and what they wrote."""

from collections import Counter
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter


def writer(frame: DataFrame, out: Path) -> DataStreamWriter:
    """To files that a restart neither loses nor doubles."""
    options = {"path": str(out / "rows"), "checkpointLocation": str(out / "checkpoint")}
    return frame.writeStream.format("parquet").options(**options)


def written(spark: SparkSession, out: Path, column: str = "number") -> Counter[object]:
    """A column of what was written, as a multiset."""
    if not any((out / "rows" / "_spark_metadata").glob("[0-9]*")):
        return Counter()
    rows = spark.read.parquet(str(out / "rows")).select(column).collect()
    return Counter(row[0] for row in rows)


def commits(out: Path) -> int:
    """Micro-batches that were committed."""
    return len(list((out / "checkpoint" / "commits").glob("[0-9]*")))


def sizes(query: StreamingQuery) -> list[int]:
    """Rows of the micro-batches that had any."""
    return [p.numInputRows for p in query.recentProgress if p.numInputRows]
