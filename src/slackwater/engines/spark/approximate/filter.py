"""Sampling for any source: a filter inside Spark whose rate changes while the query runs.

See ``plans.live_value`` for how the plan comes into the query.
"""

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.plans.live_value import LiveValue, row_chance
from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater.sampling.grid import Grid
from slackwater.sampling.plan import CellPlan, Plan

PREFIX = "slackwater.plan."


class RowFilter:
    """Samples the rows of a query.

    Parameters
    ----------
    name
        Of the query; no two have the same.
    grid
        Its windows.
    """

    def __init__(self, name: str, grid: Grid, spark: SparkSession) -> None:
        self.grid = grid
        self._live = LiveValue(spark, f"{PREFIX}{name}")
        self.follow(Plan(grid, CellPlan(), 0))

    def follow(self, plan: Plan | None) -> None:
        """Let this plan hold from the next micro-batch on; None: the query has ended."""
        if plan is None:
            self._live.clear()
            return
        # The last of the shares and doubts goes on for ever, as that of the rates does.
        wait_us, rates, shares, doubts, usual = plan.cell.numbers()
        self._live.set([rates, [*shares, 1.0], [*doubts, 0.0], usual, [wait_us]])

    def sampled(self, rows: DataFrame, time: str, arrival: str) -> DataFrame:
        """Return the rows that are kept, with the column ``sample``.

        The watermark must be on them already: rows that are dropped move it as well.
        """
        plan = self._live.sql("array<array<double>>")
        rates, shares, doubts, usual, wait = (f"{plan}[{number}]" for number in range(5))
        grid, micros = self.grid, F.unix_micros(time)
        first_us = grid.phase_us + grid.size_us
        end = micros - F.pmod(micros - first_us, F.lit(grid.slide_us)) + grid.slide_us
        before_end = end - 1 - micros
        rate = self._by_substream(rates, before_end)
        chance = row_chance(rows.columns)
        weights, doubtful = [], []
        for window in range(grid.windows_per_event):
            later_us = window * grid.slide_us
            in_time = F.unix_micros(arrival) <= end + later_us + F.expr(f"{wait}[0]")
            share = self._by_substream(shares, before_end + later_us)
            weights.append(F.when(in_time, 1 / (rate * share)).otherwise(0.0))
            doubtful.append(self._by_substream(doubts, before_end + later_us))
        delay = (F.unix_micros(arrival) - micros) / 1e6
        sample = F.struct(
            rate.alias("rate"),
            delay.alias("delay"),
            F.array(*weights).alias("weights"),
            F.array(*doubtful).alias("doubts"),
            F.expr(usual).alias("usual"),
        )
        return rows.where(chance < rate).withColumn(SAMPLE, sample)

    def _by_substream(self, values: str, before_end: Column) -> Column:
        """Return the row's value of a list with one a sub-stream, counted back from an end."""
        place = F.floor(before_end / self.grid.substream_us)
        listed = F.expr(values)
        return F.element_at(listed, (F.least(place, F.size(listed) - 1) + 1).cast("int"))
