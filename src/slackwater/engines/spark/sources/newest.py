"""Queries without a watermark that tell how old their rows are."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

OBSERVATION = "slackwater"  # as ipc.progress reads it
NEWEST = "newest_us"


def observe_newest(rows: DataFrame, event_time: str) -> DataFrame:
    """Have a query tell with every batch the newest row that it read.

    A ``target`` then counts from the time in that column, and the lag in seconds is known. A query
    with a watermark tells that anyway. Once a query: Spark takes one observation of a name.

    Parameters
    ----------
    rows
        A stream, best as it is read: what is filtered out before is not counted.
    event_time
        Its column with a timestamp.
    """
    newest = F.max(F.unix_micros(F.col(event_time).cast("timestamp"))).alias(NEWEST)
    return rows.observe(OBSERVATION, newest)
