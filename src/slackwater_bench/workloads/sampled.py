"""Workloads that can be had approximately."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from pyspark.sql import DataFrame

TrueValues = dict[tuple[Any, ...], dict[str, Any]]  # by group: each aggregate's value


class Sampled(ABC):
    """What a workload says of its approximate form."""

    by: ClassVar[tuple[str, ...]] = ()  # columns of its groups
    aggregates: ClassVar[dict[str, str]]  # as for ``Fleet.approximate``

    @abstractmethod
    def sampled_rows(self, events: DataFrame) -> DataFrame:
        """The stateless part of its query, with the column ``sample``."""

    @abstractmethod
    def true_values(self, end_us: int) -> TrueValues:
        """Of the window with this end, computed without Spark."""

    def error(self, truth: Mapping[str, Any] | None, found: Mapping[str, Any]) -> float:
        """How far a result row is off: the largest relative error of its aggregates."""
        if truth is None:
            return float("inf")
        errors = [abs(found[name] / truth[name] - 1) for name in self.aggregates]
        return float(max(errors))
