"""Catching up: almost every event is a group of its own, so what is read fills memory."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.feed import load_feed
from slackwater.workloads.base import WindowRows
from slackwater.workloads.ysb import Ysb

MOST_EVENTS = 1_000_000_000  # of a group; never reached


@dataclass(frozen=True, kw_only=True)
class CatchUp(Ysb):
    """Events by user, page, advertisement and address in each window, and their number in all.

    State grows by a row for nearly every event and shrinks when a window closes. With a backlog to
    read, a query that takes all of it at once holds all its windows in memory together.

    Examples
    --------
    >>> from slackwater.traffic import Traffic
    >>> catch_up = CatchUp(traffic=Traffic(start_s=0, rate="9"))
    >>> catch_up.truth(0, 3_000_000)
    {3000000: Counter({(27,): 1})}
    """

    name: ClassVar[str] = "catch-up"
    columns: ClassVar[tuple[str, ...]] = ("events",)

    def query(
        self,
        spark: SparkSession,
        *,
        rows_per_batch: int | None = None,
        knob: str | Path | None = None,
    ) -> DataFrame:
        """Columns ``window_start``, ``window_end``, ``events``."""
        events = load_feed(spark, self.feed_options(rows_per_batch=rows_per_batch, knob=knob))
        groups = (
            events.withWatermark("event_time", f"{self._watermark_ms} milliseconds")
            .groupBy(self._window.alias("window"), "user_id", "page_id", "ad_id", "ip_address")
            .count()
            # Without a condition on the groups Spark folds the two aggregates into one.
            .where(F.col("count") < MOST_EVENTS)
        )
        return (
            groups.groupBy("window")
            .agg(F.sum("count").alias("events"))
            .select(
                F.col("window.start").alias("window_start"),
                F.col("window.end").alias("window_end"),
                "events",
            )
        )

    def truth(self, after_us: int, until_us: int) -> WindowRows:
        """How many events each window has."""
        return {end: self._events_until(end) for end in self.window_ends(after_us, until_us)}

    def _events_until(self, end_us: int) -> Counter[tuple[Any, ...]]:
        first = self._timeline.happened(end_us - self.windows.size_us - 1)
        number = self._timeline.happened(end_us - 1) - first
        return Counter({(number,): 1}) if number else Counter()
