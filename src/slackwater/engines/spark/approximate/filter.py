"""Sampling for any source: a filter inside Spark whose rate changes while the query runs.

The plan is a Java system property. A scalar subquery over ``VALUES`` that reads it is evaluated by
Spark's optimizer, on the driver, once for each micro-batch, and is a constant for the executors.
Without the ``VALUES`` executors would evaluate it, where the property is not set.
"""

import json

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater.sampling.grid import Grid
from slackwater.sampling.plan import CellPlan, Plan

_BITS = 53  # of a hash that make a number between 0 and 1


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
        self._spark = spark
        self._property = f"slackwater.operations.planning.{name}"
        self.write(Plan(grid, CellPlan(), 0))

    def write(self, plan: Plan) -> None:
        """From the next micro-batch on this plan holds."""
        numbers = plan.cell.numbers()
        # The last of the shares and doubts goes on for ever, as that of the rates does.
        wait_us, rates, shares, doubts, usual = numbers
        lists = [rates, [*shares, 1.0], [*doubts, 0.0], usual, [wait_us]]
        jvm = self._spark._jvm
        assert jvm is not None
        jvm.java.lang.System.setProperty(self._property, json.dumps(lists))

    def clear(self) -> None:
        """The query has ended."""
        jvm = self._spark._jvm
        if jvm is not None:
            jvm.java.lang.System.clearProperty(self._property)

    def sampled(self, rows: DataFrame, time: str, arrival: str) -> DataFrame:
        """The rows that are kept, with the column ``sample``.

        The watermark must be on them already: rows that are dropped move it as well.
        """
        plan = self._plan(rows)
        rates, shares, doubts, usual, wait = (f"{plan}[{number}]" for number in range(5))
        grid, micros = self.grid, F.unix_micros(time)
        first_us = grid.phase_us + grid.size_us
        end = micros - F.pmod(micros - first_us, F.lit(grid.slide_us)) + grid.slide_us
        before_end = end - 1 - micros
        rate = self._by_substream(rates, before_end)
        chance = F.shiftrightunsigned(F.xxhash64(*rows.columns), 64 - _BITS) / 2.0**_BITS
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

    def _plan(self, rows: DataFrame) -> str:
        """The plan's lists, as SQL."""
        text = f"reflect('java.lang.System', 'getProperty', '{self._property}')"
        parsed = f"from_json({text}, 'array<array<double>>')"
        return f"(SELECT {parsed} FROM VALUES (1) AS t(x))"

    def _by_substream(self, values: str, before_end: Column) -> Column:
        """Of a list with a value for each sub-stream, counted back from an end, the row's."""
        place = F.floor(before_end / self.grid.substream_us)
        listed = F.expr(values)
        return F.element_at(listed, (F.least(place, F.size(listed) - 1) + 1).cast("int"))
