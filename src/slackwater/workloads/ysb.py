"""Yahoo Streaming Benchmark: views of advertisements, counted by campaign and window."""

import json
import math
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.feed import load_feed
from slackwater.engines.spark.feed_options import FeedOptions
from slackwater.traffic import Timeline, Traffic
from slackwater.workloads.base import WindowGrid, WindowRows
from slackwater.workloads.ysb_events import VIEW, YsbEvents


@dataclass(frozen=True, kw_only=True)
class Ysb:
    """Filter, project, join with a static table, count by window.

    Examples
    --------
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
    columns: ClassVar[tuple[str, ...]] = ("campaign_id", "count")  # of a result, after its window

    traffic: Traffic
    campaigns: int = 100
    ads_per_campaign: int = 10
    window_s: float = 3.0
    slide_s: float | None = None  # None: tumbling
    phase_s: float = 0.0  # windows start at phase + n * slide since the epoch
    watermark_s: float | None = None  # None: the largest delay, so that no row is ever dropped

    @cached_property
    def windows(self) -> WindowGrid:
        """Where the windows lie."""
        return WindowGrid.of_seconds(self.window_s, self.slide_s, self.phase_s)

    @cached_property
    def events(self) -> YsbEvents:
        """The payload generator, for the truth."""
        return YsbEvents(seed=self.traffic.seed, **self._arguments)

    @property
    def _arguments(self) -> dict[str, int]:
        return {"campaigns": self.campaigns, "ads_per_campaign": self.ads_per_campaign}

    def feed_options(
        self, *, rows_per_batch: int | None = None, knob: str | Path | None = None
    ) -> FeedOptions:
        """The input stream as a feed."""
        return FeedOptions(
            traffic=self.traffic,
            generator="slackwater.workloads.ysb_events:YsbEvents",
            arguments=json.dumps(self._arguments, sort_keys=True),
            rows_per_batch=rows_per_batch,
            knob=None if knob is None else str(Path(knob).absolute()),
        )

    def query(
        self,
        spark: SparkSession,
        *,
        rows_per_batch: int | None = None,
        knob: str | Path | None = None,
    ) -> DataFrame:
        """Columns ``window_start``, ``window_end``, ``campaign_id``, ``count``."""
        views = (
            load_feed(spark, self.feed_options(rows_per_batch=rows_per_batch, knob=knob))
            .withWatermark("event_time", f"{self._watermark_ms} milliseconds")
            .where(F.col("event_type") == "view")
            .select("ad_id", "event_time")
        )
        counts = (
            views.join(F.broadcast(self.campaign_table(spark)), "ad_id")
            .groupBy(self._window.alias("window"), "campaign_id")
            .count()
        )
        return counts.select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            "campaign_id",
            "count",
        )

    def campaign_table(self, spark: SparkSession) -> DataFrame:
        """The static table: ``ad_id`` to ``campaign_id``.

        From Arrow it becomes a local relation, which is broadcast without a Spark job; the same
        rows as a Python list would be an RDD, scanned by a job of their own in every micro-batch.
        """
        names = np.asarray(self.events.campaigns)[self.events.campaign_of]
        return spark.createDataFrame(pa.table({"ad_id": self.events.ads, "campaign_id": names}))

    def window_ends(self, after_us: int, until_us: int) -> list[int]:
        """Ends of windows with ``after_us < end <= until_us``."""
        return self.windows.ends(after_us, until_us)

    def truth(self, after_us: int, until_us: int) -> WindowRows:
        """``(campaign_id, count)`` rows of every window that ends in a stretch of time."""
        return {end: self._truth_of(end) for end in self.window_ends(after_us, until_us)}

    @cached_property
    def _timeline(self) -> Timeline:
        return self.traffic.timeline()

    def _truth_of(self, end_us: int) -> Counter[tuple[Any, ...]]:
        first = self._timeline.happened(end_us - self.windows.size_us - 1)
        last = self._timeline.happened(end_us - 1)
        views = np.zeros(self.campaigns, dtype=np.int64)
        for partition in range(self.traffic.partitions):
            index = np.arange(*self._timeline.partition_range(partition, first, last))
            ads, types = self.events.ads_and_types(partition, index)
            campaigns = self.events.campaign_of[ads[types == VIEW]]
            views += np.bincount(campaigns, minlength=self.campaigns)
        return Counter(
            (self.events.campaigns[c], int(views[c])) for c in np.flatnonzero(views).tolist()
        )

    @property
    def _window(self) -> Column:
        grid = self.windows
        lengths = grid.size_us, grid.slide_us, grid.phase_us % grid.slide_us
        return F.window("event_time", *map(_interval, lengths))

    @property
    def _watermark_ms(self) -> int:
        # Upwards, because Spark keeps watermarks in whole milliseconds.
        delay_s = self.traffic.max_delay_s if self.watermark_s is None else self.watermark_s
        return math.ceil(round(delay_s * 1e3, 3))


def _interval(microseconds: int) -> str:
    return f"{microseconds} microseconds"
