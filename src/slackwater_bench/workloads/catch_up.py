"""Catching up: almost every event is a group of its own, so what is read fills memory."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater_bench.workloads.base import Rows
from slackwater_bench.workloads.ysb import Ysb

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

    def _results(self, events: DataFrame) -> DataFrame:
        window = self.windows.column("event_time").alias("window")
        groups = (
            events.groupBy(window, "user_id", "page_id", "ad_id", "ip_address")
            .count()
            # Without a condition on the groups Spark folds the two aggregates into one.
            .where(F.col("count") < MOST_EVENTS)
        )
        return groups.groupBy("window").agg(F.sum("count").alias("events"))

    def _truth_of(self, end_us: int) -> Rows:
        number = sum(len(index) for _, index in self._numbers(end_us))
        return Counter({(number,): 1}) if number else Counter()
