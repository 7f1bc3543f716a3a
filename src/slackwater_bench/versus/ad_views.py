"""Views of advertisements, counted by advertisement and window."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater_bench.workloads.base import Rows
from slackwater_bench.workloads.ysb import Ysb


@dataclass(frozen=True, kw_only=True)
class AdViews(Ysb):
    """Yahoo's windows without the join: each campaign has one advertisement.

    Flink's SQL has no join with a static table that keeps event times, short of a database.

    >>> from slackwater.traffic import Traffic
    >>> views = AdViews(traffic=Traffic(start_s=0, rate="9"), campaigns=1)
    >>> [rows.total() for rows in views.truth(0, 6_000_000).values()]
    [1, 1]
    """

    name: ClassVar[str] = "ad-views"
    columns: ClassVar[tuple[str, ...]] = ("ad_id", "count")
    by: ClassVar[tuple[str, ...]] = ("ad_id",)

    ads_per_campaign: int = 1

    def _results(self, events: DataFrame) -> DataFrame:
        window = self.windows.column("event_time").alias("window")
        return events.where(F.col("event_type") == "view").groupBy(window, "ad_id").count()

    def _truth_of(self, end_us: int) -> Rows:
        ad_of = dict(zip(self.events.campaigns, self.events.ads, strict=True))
        counts = super()._truth_of(end_us)
        return Counter((ad_of[campaign], views) for campaign, views in counts)
