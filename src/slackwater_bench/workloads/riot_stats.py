"""RIoTBench's STATS: three analyses of the same readings, each on a path of its own."""

from dataclasses import dataclass
from math import sqrt

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater_bench.workloads.riot_sensors import (
    FACTOR,
    MISSING_EVERY,
    MODULUS,
    SENSORS,
    Readings,
)

WINDOW = 1_000  # readings
Row = tuple[int, int, str, float]


@dataclass(frozen=True, kw_only=True)
class RiotStats:
    """One query: average, second moment and number of distinct values, by sensor and window.

    RIoTBench's second path is a Kalman filter with a sliding regression, which depends on the order
    of rows; the second moment is what its block of statistics has besides.

    References
    ----------
    Shukla, Chaturvedi and Simmhan, *RIoTBench*, Concurrency and Computation 29(21), 2017.
    """

    number: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        return f"stats-{self.number}"

    def pipeline(self, rows: DataFrame) -> DataFrame:
        """Return it on Spark, on rows with a column ``id``: window, sensor, kind, value.

        Every sensor and window gives three rows: results are more than a fan-out of the input.
        """
        mixed = (F.col("id") * FACTOR + self.seed * 101) % MODULUS
        readings = rows.select(
            F.floor(F.col("id") / WINDOW).cast("bigint").alias("w"),
            (F.col("id") % SENSORS).alias("sensor"),
            (mixed / 100.0).alias("v"),
            (mixed % MISSING_EVERY != 0).alias("present"),
        ).where("present")
        figures = readings.groupBy("w", "sensor").agg(
            F.avg("v").alias("average"),
            F.sqrt(F.avg(F.col("v") * F.col("v"))).alias("moment"),
            F.size(F.collect_set("v")).cast("double").alias("distinct"),
        )
        kinds = "stack(3, 'average', average, 'moment', moment, 'distinct', distinct)"
        return figures.selectExpr("w", "sensor", f"{kinds} AS (kind, value)")

    def truth(self, numbers: NDArray[np.int64]) -> list[Row]:
        """Return rows of these readings, values to four places.

        >>> len(RiotStats().truth(np.arange(1000)))
        300
        """
        found = Readings.of(numbers, self.seed)
        groups: dict[tuple[int, int], list[float]] = {}
        for n, sensor, value, missing in zip(
            found.number.tolist(),
            found.sensor.tolist(),
            found.value.tolist(),
            found.missing.tolist(),
            strict=True,
        ):
            if not missing:
                groups.setdefault((n // WINDOW, sensor), []).append(value)
        rows: list[Row] = []
        for (window, sensor), values in groups.items():
            moment = sqrt(sum(v * v for v in values) / len(values))
            rows += [
                (window, sensor, "average", round(sum(values) / len(values), 4)),
                (window, sensor, "moment", round(moment, 4)),
                (window, sensor, "distinct", float(len(set(values)))),
            ]
        return sorted(rows)
