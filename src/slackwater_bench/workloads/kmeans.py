"""k-means of the points of each window: an operator that costs more than all the rest."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater.sampling.clusters import inertia, kmeans
from slackwater_bench.workloads.base import ApproximateWorkload, Rows, TrueValues
from slackwater_bench.workloads.kmeans_points import KMeansPoints

_DIGITS = 6  # of a coordinate in a result


@dataclass(frozen=True, kw_only=True)
class KMeans(ApproximateWorkload):
    """Points are filtered, collected by window, and clustered when it closes.

    Examples
    --------
    >>> from slackwater.traffic import Traffic
    >>> work = KMeans(traffic=Traffic(start_s=0, rate="100"), clusters=2)
    >>> ((centres,),) = work.truth(0, 3_000_000)[3_000_000]
    >>> [round(each) for each in centres]
    [-17, 0, 23, 0]
    """

    name: ClassVar[str] = "kmeans"
    columns: ClassVar[tuple[str, ...]] = ("clusters",)

    window_s: float = 3.0
    clusters: int = 8

    @property
    def aggregates(self) -> dict[str, str]:  # type: ignore[override]
        return {"clusters": f"kmeans(x, y, {self.clusters})"}

    @property
    def _generator(self) -> type[KMeansPoints]:
        return KMeansPoints

    @property
    def _arguments(self) -> dict[str, int]:
        return {"clusters": self.clusters}

    def _results(self, events: DataFrame) -> DataFrame:
        from pyspark.sql.pandas.functions import arrow_udf  # from Spark 4.1 on

        window = self.windows.column("event_time").alias("window")
        collected = (
            events.where("valid").groupBy(window).agg(F.collect_list(F.struct("x", "y")).alias("p"))
        )
        clustered = arrow_udf(_Clustering(self.clusters).centres, "array<double>")  # type: ignore[call-overload]
        return collected.select("window", clustered("p").alias("clusters"))

    def _truth_of(self, end_us: int) -> Rows:
        centres = kmeans(points := self._points(end_us), np.ones(len(points)), self.clusters)
        return Counter([(tuple(centres.ravel().round(_DIGITS).tolist()),)])

    def sampled_rows(self, events: DataFrame) -> DataFrame:
        return events.where("valid").select("x", "y", "event_time", SAMPLE)

    def true_values(self, end_us: int) -> TrueValues:
        points = self._points(end_us)
        best = inertia(points, kmeans(points, np.ones(len(points)), self.clusters))
        return {(): {"clusters": (points, best)}}

    def error(self, truth: Mapping[str, Any] | None, found: Mapping[str, Any]) -> float:
        """Return how much more inertia the centres leave on all points than the best ones do."""
        if truth is None:
            return float("inf")
        points, best = truth["clusters"]
        centres = np.array(found["clusters"]).reshape(-1, 2)
        return max(0.0, inertia(points, centres) / float(best) - 1)

    def _points(self, end_us: int) -> NDArray[np.float64]:
        found = [self.events.points(*numbers) for numbers in self._numbers(end_us)]
        x, y, valid = (np.concatenate(column) for column in zip(*found, strict=True))
        return np.asarray(np.stack([x, y], axis=1)[valid])


@dataclass(frozen=True)
class _Clustering:
    """The window operator, in a Python worker."""

    clusters: int

    def centres(self, collected: pa.Array) -> pa.Array:
        lists = [self._centres(collected[row].values) for row in range(len(collected))]
        return pa.array(lists, pa.list_(pa.float64()))

    def _centres(self, structs: pa.StructArray) -> list[float]:
        fields = [field.to_numpy(zero_copy_only=False) for field in structs.flatten()]
        points = np.stack(fields, axis=1)
        found: list[float] = kmeans(points, np.ones(len(points)), self.clusters).ravel().tolist()
        return [round(each, _DIGITS) for each in found]
