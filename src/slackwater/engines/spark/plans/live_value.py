"""Values in a query's plan that change while it runs, for queries over any source.

A value is a Java system property. A scalar subquery over ``VALUES`` that reads it is evaluated by
Spark's optimizer, on the driver, once for each micro-batch, and is a constant for the executors.
Without the ``VALUES`` executors would evaluate it, where the property is not set.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

_BITS = 53  # of a hash that make a number between 0 and 1


@dataclass(frozen=True)
class LiveValue:
    """One value, by the name of its property."""

    spark: SparkSession
    name: str

    def set(self, value: Any) -> None:
        """Let this value hold from the next micro-batch on; it is written as JSON."""
        self._system.setProperty(self.name, json.dumps(value))

    def clear(self) -> None:
        """Forget the value: its query has ended."""
        if self.spark._jvm is not None:
            self._system.clearProperty(self.name)

    def sql(self, kind: str) -> str:
        """Return an expression of this Spark type that has the value."""
        text = f"reflect('java.lang.System', 'getProperty', '{self.name}')"
        return f"(SELECT from_json({text}, '{kind}') FROM VALUES (1) AS t(x))"

    @property
    def _system(self) -> Any:
        assert self.spark._jvm is not None
        return self.spark._jvm.java.lang.System


def row_chance(columns: Sequence[Column | str]) -> Column:
    """Return a number between 0 and 1 that depends on the values of some columns alone."""
    return F.shiftrightunsigned(F.xxhash64(*columns), 64 - _BITS) / 2.0**_BITS
