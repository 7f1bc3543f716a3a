"""Yahoo Streaming Benchmark: views of advertisements, counted by campaign and window."""

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater_bench.workloads.base import ApproximateWorkload, Rows, TrueValues
from slackwater_bench.workloads.ysb_events import VIEW, YsbEvents


@dataclass(frozen=True, kw_only=True)
class Ysb(ApproximateWorkload):
    """Filter, project, join with a static table, count by window.

    Examples
    --------
    >>> from slackwater.traffic import Traffic
    >>> ysb = Ysb(traffic=Traffic(start_s=0, rate="9"), campaigns=1)
    >>> ysb.window_ends(0, 6_000_000)
    [3000000, 6000000]
    >>> [rows.total() for rows in ysb.truth(0, 6_000_000).values()]
    [1, 1]

    References
    ----------
    Chintapalli et al., *Benchmarking Streaming Computation Engines: Storm, Flink and Spark
    Streaming*, IPDPSW 2016.
    """

    name: ClassVar[str] = "ysb"
    columns: ClassVar[tuple[str, ...]] = ("campaign_id", "count")
    by: ClassVar[tuple[str, ...]] = ("campaign_id",)
    aggregates: ClassVar[dict[str, str]] = {"count": "count()"}

    window_s: float = 3.0
    campaigns: int = 100
    ads_per_campaign: int = 10

    @property
    def _generator(self) -> type[YsbEvents]:
        return YsbEvents

    @property
    def _arguments(self) -> dict[str, int]:
        return {"campaigns": self.campaigns, "ads_per_campaign": self.ads_per_campaign}

    def _results(self, events: DataFrame) -> DataFrame:
        window = self.windows.column("event_time").alias("window")
        return self._prepared(events).groupBy(window, "campaign_id").count()

    def _prepared(self, events: DataFrame, *keep: str) -> DataFrame:
        """Return the stateless part; it leaves also the columns ``keep``."""
        views = events.where(F.col("event_type") == "view").select("ad_id", "event_time", *keep)
        return views.join(F.broadcast(self.campaign_table(events.sparkSession)), "ad_id")

    def sampled_rows(self, events: DataFrame) -> DataFrame:
        return self._prepared(events, SAMPLE)

    def true_values(self, end_us: int) -> TrueValues:
        return {(campaign,): {"count": float(n)} for campaign, n in self._truth_of(end_us)}

    def campaign_table(self, spark: SparkSession) -> DataFrame:
        """Return the static table: ``ad_id`` to ``campaign_id``.

        From Arrow it becomes a local relation, which is broadcast without a Spark job; the same
        rows as a Python list would be an RDD, scanned by a job of their own in every micro-batch.
        """
        names = np.asarray(self.events.campaigns)[self.events.campaign_of]
        return spark.createDataFrame(pa.table({"ad_id": self.events.ads, "campaign_id": names}))

    def _truth_of(self, end_us: int) -> Rows:
        views = np.zeros(self.campaigns, dtype=np.int64)
        for partition, index in self._numbers(end_us):
            ads, types = self.events.ads_and_types(partition, index)
            campaigns = self.events.campaign_of[ads[types == VIEW]]
            views += np.bincount(campaigns, minlength=self.campaigns)
        return Counter(
            (self.events.campaigns[c], int(views[c])) for c in np.flatnonzero(views).tolist()
        )
