"""K nearest neighbours: labels each point by those of the reference points next to it.

CPU-heavy in proportion to its rows, as an application that is to be shed should be.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.engines.spark.sources.feed import load_feed
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.traffic import Traffic

Floats = NDArray[np.float64]

_GRID = 50_021  # places of reference points, a thousandth apart
_FACTORS = (7919, 20_011)

GENERATOR = "slackwater_bench.workloads.kmeans_points:KMeansPoints"


@dataclass(frozen=True, kw_only=True)
class Knn:
    """One application of one query.

    Parameters
    ----------
    traffic
        Of its input.
    references
        Labelled points that each row is compared with: what a row costs.
    neighbours
        k.
    """

    traffic: Traffic
    references: int = 200
    neighbours: int = 5
    labels: int = 4

    def query(
        self, spark: SparkSession, *, sheddable: bool = True, rows_per_batch: int | None = None
    ) -> DataFrame:
        """Return points with their label."""
        options = FeedOptions(
            traffic=self.traffic,
            generator=GENERATOR,
            rows_per_batch=rows_per_batch,
            sheddable=sheddable,
        )
        return self.labelled(load_feed(spark, options))

    def labelled(self, points: DataFrame) -> DataFrame:
        """Return any rows with ``x`` and ``y``, with their label."""
        label = self._label(F.col("x"), F.col("y"))
        return points.select("event_time", "x", "y", label.alias("label"))

    def truth(self, x: Floats, y: Floats) -> NDArray[np.int64]:
        """Return the labels, without Spark."""
        places, labels = self._places()
        squares = (x[:, None] - places[0]) ** 2 + (y[:, None] - places[1]) ** 2
        nearest = np.argsort(squares, axis=1, kind="stable")[:, : self.neighbours]
        votes = np.stack([(labels[nearest] == each).sum(axis=1) for each in range(self.labels)])
        found: NDArray[np.int64] = np.argmax(votes, axis=0)
        return found

    def _places(self) -> tuple[Floats, NDArray[np.int64]]:
        number = np.arange(self.references)
        places = np.stack([number * factor % _GRID for factor in _FACTORS]) / 1000 - 25
        return places, number % self.labels

    def _label(self, x: Column, y: Column) -> Column:
        """Return the most frequent label of the nearest; of equals the smallest."""
        # By a formula, so that the plan stays small however many there are.
        places = F.transform(
            F.sequence(F.lit(0), F.lit(self.references - 1)),
            lambda number: F.struct(
                *(
                    (F.pmod(number * factor, F.lit(_GRID)) / 1000 - 25).alias(axis)
                    for axis, factor in zip("xy", _FACTORS, strict=True)
                ),
                number.alias("i"),
                F.pmod(number, F.lit(self.labels)).alias("l"),
            ),
        )
        squares = F.transform(
            places,
            lambda p: F.struct(
                ((x - p["x"]) * (x - p["x"]) + (y - p["y"]) * (y - p["y"])).alias("d"),
                p["i"].alias("i"),
                p["l"].alias("l"),
            ),
        )
        nearest = F.slice(F.array_sort(squares), 1, self.neighbours)
        votes = [
            F.struct(
                F.size(F.filter(nearest, _votes_for(label))).alias("votes"),
                F.lit(-label).alias("label"),
            )
            for label in range(self.labels)
        ]
        return -F.array_max(F.array(*votes))["label"]


def _votes_for(label: int):  # type: ignore[no-untyped-def]
    return lambda p: p["l"] == label
