"""The last step of an approximate query: from sums of weighted rows to values and intervals.

Runs in a Python worker on what a window has left, a few rows for each group, so that the formulas
are the tested ones of :mod:`slackwater.sampling.estimates`.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, DoubleType, StructField, StructType

from slackwater.sampling import estimates
from slackwater.sampling.aggregates import Aggregate
from slackwater.sampling.estimates import Estimate, Moments, Weights
from slackwater.sampling.promise import Promise

RATE, BOUNDED = "sampling_rate", "bounded"  # columns of every result
ROOM, ROWS = "slackwater_room", "slackwater_rows"  # for the planner; users never see them

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Finishing:
    """Makes the result of an approximate query.

    Parameters
    ----------
    keys
        Columns of the result that come first: the window, and what it is grouped by.
    aggregates, promise
        What was asked for.
    """

    keys: tuple[str, ...]
    aggregates: tuple[Aggregate, ...]
    promise: Promise

    @property
    def columns(self) -> tuple[str, ...]:
        """Whose values are needed, each once."""
        return tuple(dict.fromkeys(c for a in self.aggregates for c in a.columns))

    def sums(self, weight: Column, doubt: Column, rate: Column) -> list[Column]:
        """What Spark adds up for each group."""
        found = [F.sum(1 / rate).alias("arrived"), *_weights("all", weight, doubt, F.lit(1.0))]
        for aggregate in self.aggregates:
            name = aggregate.name
            values = [F.col(column).cast("double") for column in aggregate.columns]
            if aggregate.kind == "mean":
                present = F.when(values[0].isNotNull(), 1.0)
                found += _weights(f"{name}_n", weight, doubt, present)
            if aggregate.kind in ("sum", "mean", "ratio"):
                found += _moments(f"{name}_a", weight, doubt, values[0])
            if aggregate.kind == "ratio":
                found += _moments(f"{name}_b", weight, doubt, values[1])
                found += _moments(f"{name}_ab", weight, doubt, values[0] * values[1])
            if aggregate.kind == "quantile":
                pair = F.struct(values[0].alias("v"), weight.alias("w"))
                found.append(F.collect_list(F.when(values[0].isNotNull(), pair)).alias(name))
        return found

    def schema(self, sums: StructType) -> StructType:
        """Of the result, and of what the planner needs besides."""
        fields = [sums[key] for key in self.keys]
        for aggregate in self.aggregates:
            names = (aggregate.name, f"{aggregate.name}_low", f"{aggregate.name}_high")
            fields += [StructField(name, DoubleType()) for name in names]
        fields += [StructField(RATE, DoubleType()), StructField(BOUNDED, BooleanType())]
        fields += [StructField(name, DoubleType()) for name in (ROOM, ROWS)]
        return StructType(fields)

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            if batch.num_rows:
                yield self.finish(batch)

    def finish(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The results of some groups."""
        everything = _read_weights(batch, "all")
        columns: dict[str, pa.Array | Floats] = {key: batch.column(key) for key in self.keys}
        bounded, room = np.ones(batch.num_rows, dtype=bool), np.full(batch.num_rows, np.inf)
        for aggregate in self.aggregates:
            found = self._estimate(aggregate, batch, everything)
            columns[aggregate.name] = found.value
            columns[f"{aggregate.name}_low"] = found.low
            columns[f"{aggregate.name}_high"] = found.high
            bounded &= found.bounded
            room = np.minimum(room, found.room)
        columns[RATE] = everything.rows / _floats(batch, "arrived")
        columns[BOUNDED] = bounded
        columns[ROOM], columns[ROWS] = room, everything.weight
        arrays = [value if isinstance(value, pa.Array) else pa.array(value) for value in columns.values()]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _estimate(self, aggregate: Aggregate, batch: pa.RecordBatch, all_rows: Weights) -> Estimate:
        name, promise = aggregate.name, self.promise
        if aggregate.kind == "count":
            return estimates.count(all_rows, promise)
        if aggregate.kind == "quantile":
            assert aggregate.level is not None
            pairs = batch.column(name)
            lists = [_pairs(pairs[row].values) for row in range(len(pairs))]
            values, weights = zip(*lists, strict=True)
            return estimates.quantile(aggregate.level, list(values), list(weights), promise)
        above = _read_moments(batch, f"{name}_a")
        if aggregate.kind == "sum":
            return estimates.total(all_rows, above, promise)
        if aggregate.kind == "mean":
            return estimates.mean(_read_weights(batch, f"{name}_n"), above, promise)
        below, crossed = (_read_moments(batch, f"{name}_{part}") for part in ("b", "ab"))
        return estimates.ratio(all_rows, above, below, crossed, promise)


def _weights(name: str, weight: Column, doubt: Column, present: Column) -> list[Column]:
    terms = {"n": present, "w": weight * present, "s": weight * (weight - 1) * present}
    terms["d"] = weight * doubt * present
    return [F.sum(term).alias(f"{name}_{key}") for key, term in terms.items()]


def _moments(name: str, weight: Column, doubt: Column, value: Column) -> list[Column]:
    more = weight * (weight - 1)
    terms = {
        "t": weight * value,
        "q": weight * value * value,
        "s": more * value,
        "p": more * value * value,
        "d": weight * doubt * value,
    }
    sums = [F.sum(term).alias(f"{name}_{key}") for key, term in terms.items()]
    return [*sums, F.max(F.abs(value)).alias(f"{name}_m")]


def _read_weights(batch: pa.RecordBatch, name: str) -> Weights:
    return Weights(*(_floats(batch, f"{name}_{key}") for key in "nwsd"))


def _read_moments(batch: pa.RecordBatch, name: str) -> Moments:
    return Moments(*(_floats(batch, f"{name}_{key}") for key in "tqspdm"))


def _floats(batch: pa.RecordBatch, name: str) -> Floats:
    column = batch.column(name).fill_null(0.0)
    return np.array(column.to_numpy(zero_copy_only=False), dtype=np.float64)


def _pairs(structs: pa.StructArray) -> tuple[Floats, Floats]:
    values, weights = (structs.field(n).to_numpy(zero_copy_only=False) for n in (0, 1))
    return values, weights
