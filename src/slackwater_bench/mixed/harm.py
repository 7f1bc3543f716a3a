"""Fleets made to break a promise: no kind of query is slower under klink than on Spark itself."""

from typing import ClassVar

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater_bench.mixed.kinds import (
    Dashboards,
    Kind,
    SlowSinks,
    Tables,
    TenSeconds,
    figures,
    named,
)
from slackwater_bench.mixed.shape import FRESH_S

BURST_EVERY_S = 20
COPIES = 1000  # of each row in a second with a burst
DIGESTED = 100_000  # times ten characters: a row of a huge query takes some milliseconds


class LongSinks(SlowSinks):
    """Sleeps for so long that a slot lost to each would stop all others."""

    name, count, sleeps_s = "sink that sleeps 8 s", 0, 8.0
    target_s = 2 * sleeps_s + FRESH_S


class Triggered(Tables):
    """Asks for a batch more often than any machine can run them for many."""

    name, count, trigger_s = "stateless, every 0.2 s", 0, 0.2


class Huge(TenSeconds):
    """Takes seconds of CPU for the rows of a window: each is hashed with a million characters."""

    name, count = "huge windows of 10 s", 0

    def figures(self) -> list[Column]:
        digits = F.lpad(F.col("value").cast("string"), 10, "0")
        digest = F.sha2(F.repeat(digits, DIGESTED), 256)
        return [F.count(F.when(F.length(digest) == 64, 1)).alias("rows"), *figures()[1:]]


class Bursts(TenSeconds):
    """Gets a thousand times as many rows in one second of twenty, as all others of its kind do."""

    name, count = "windows over bursts", 0
    bursting: ClassVar[str] = f"unix_seconds(timestamp) % {BURST_EVERY_S} = 0"

    def marked(self, rows: DataFrame) -> DataFrame:
        copies = F.expr(f"explode(sequence(1, if({self.bursting}, {COPIES}, 1)))").alias("copy")
        return super().marked(rows).select("*", copies)

    def figures(self) -> list[Column]:
        return [F.count(F.when(F.col("copy") == 1, 1)).alias("rows"), *figures()[1:]]


FLEETS: dict[str, dict[type[Kind], int]] = {
    "sinks": {TenSeconds: 1, LongSinks: 4},
    "triggers": {TenSeconds: 4, Triggered: 4},
    "huge": {Huge: 1, TenSeconds: 6, Tables: 4},
    "bursts": {Bursts: 6, Dashboards: 2, Tables: 2},
}


def harmful(fleet: str) -> dict[str, Kind]:
    """Return the queries of such a fleet by name.

    >>> list(harmful("sinks"))[:2]
    ['windows_of_10_s_0', 'sink_that_sleeps_8_s_0']
    """
    return named(FLEETS[fleet])
