"""The last step of an approximate query: from sums of weighted rows to values and intervals.

Runs in a Python worker on what a window has left, a few rows for each group, so that the formulas
are the tested ones of :mod:`slackwater.sampling.estimates`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import and_

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, BooleanType, DoubleType, StructField, StructType

from slackwater.engines.spark.session.versions import map_structs
from slackwater.sampling import estimates
from slackwater.sampling.aggregates import CLUSTERS, Aggregate
from slackwater.sampling.clusters import kmeans, room_for_clusters
from slackwater.sampling.estimates import Estimate, Moments, Weights
from slackwater.sampling.promise import Promise

COLLECTED = ("quantile", CLUSTERS)  # need the rows of the sample themselves
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

    def sums(self, weight: Column, doubt: Column, sample: Column) -> list[Column]:
        """Return what Spark adds up for each group."""
        found = [
            F.sum(1 / sample["rate"]).alias("arrived"),
            F.max(sample["usual"][0]).alias("least"),
            F.min(sample["usual"][1]).alias("most"),
            *_weights("all", weight, doubt, F.lit(1.0)),
        ]
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
            if aggregate.kind in COLLECTED:
                row = F.struct(*(v.alias(f"v{n}") for n, v in enumerate(values)), weight.alias("w"))
                whole = reduce(and_, (value.isNotNull() for value in values))
                found.append(F.collect_list(F.when(whole, row)).alias(name))
        return found

    def result(self, sums: DataFrame) -> DataFrame:
        """Return the result, and what the planner needs besides."""
        # One task: whether a window is unusual shows in all of its groups only.
        whole = sums.coalesce(1)
        rows = map_structs(whole, self.keys, self._finish_all, self._schema(), "found")
        return rows.select(*self.keys, "found.*")

    def _finish_all(self, structs: Iterator[pa.Array]) -> Iterator[pa.Array]:
        parts = list(structs)
        if not parts:
            return
        whole = pa.concat_arrays(parts)
        found = self.finish(pa.RecordBatch.from_struct_array(whole))
        first = 0
        for part in parts:  # as many rows in as many parts as came
            yield found.slice(first, len(part))
            first += len(part)

    def _schema(self) -> StructType:
        fields = []
        for aggregate in self.aggregates:
            clusters = aggregate.kind == CLUSTERS
            kind = ArrayType(DoubleType()) if clusters else DoubleType()
            fields.append(StructField(aggregate.name, kind))
            if not clusters:
                ends = (f"{aggregate.name}_low", f"{aggregate.name}_high")
                fields += [StructField(name, DoubleType()) for name in ends]
        fields += [StructField(RATE, DoubleType()), StructField(BOUNDED, BooleanType())]
        fields += [StructField(name, DoubleType()) for name in (ROOM, ROWS)]
        return StructType(fields)

    def finish(self, batch: pa.RecordBatch) -> pa.StructArray:
        """Compute the results of some groups, given their sums."""
        everything = _read_weights(batch, "all")
        columns: dict[str, pa.Array | Floats] = {}
        bounded, room = np.ones(batch.num_rows, dtype=bool), np.full(batch.num_rows, np.inf)
        for aggregate in self.aggregates:
            if aggregate.kind == CLUSTERS:
                columns[aggregate.name], needed = self._clusters(aggregate, batch)
                # A sample that uses up more room than there is has too few rows for its promise.
                bounded &= everything.spread <= needed * everything.weight + 1e-9
                bounded &= np.array([len(each) > 0 for each in columns[aggregate.name]])
                room = np.minimum(room, needed)
                continue
            found = self._estimate(aggregate, batch, everything)
            columns[aggregate.name] = found.value
            columns[f"{aggregate.name}_low"] = found.low
            columns[f"{aggregate.name}_high"] = found.high
            bounded &= found.bounded
            room = np.minimum(room, found.room)
        columns[RATE] = everything.rows / _floats(batch, "arrived")
        columns[BOUNDED] = bounded & _usual(batch, everything.weight)
        columns[ROOM], columns[ROWS] = room, everything.weight
        arrays = [
            value if isinstance(value, pa.Array) else pa.array(value, from_pandas=True)
            for value in columns.values()
        ]
        return pa.StructArray.from_arrays(arrays, names=list(columns))

    def _clusters(self, aggregate: Aggregate, batch: pa.RecordBatch) -> tuple[pa.Array, Floats]:
        """Return centres, all coordinates in a row, and the room that each group has."""
        assert aggregate.number is not None
        number = int(aggregate.number)
        samples = _collected(batch, aggregate.name)
        centres = [kmeans(points, weights, number).ravel() for points, weights in samples]
        rows = np.array([weights.sum() for _, weights in samples])
        room = room_for_clusters(number, len(aggregate.columns), rows, self.promise)
        return pa.array(centres, pa.list_(pa.float64())), room

    def _estimate(self, aggregate: Aggregate, batch: pa.RecordBatch, all_rows: Weights) -> Estimate:
        name, promise = aggregate.name, self.promise
        if aggregate.kind == "count":
            return estimates.count(all_rows, promise)
        if aggregate.kind == "quantile":
            assert aggregate.number is not None
            values, weights = zip(*_collected(batch, name), strict=True)
            lists = [each[:, 0] for each in values]
            return estimates.quantile(aggregate.number, lists, list(weights), promise)
        above = _read_moments(batch, f"{name}_a")
        if aggregate.kind == "sum":
            return estimates.total(all_rows, above, promise)
        if aggregate.kind == "mean":
            return estimates.mean(_read_weights(batch, f"{name}_n"), above, promise)
        below, crossed = (_read_moments(batch, f"{name}_{part}") for part in ("b", "ab"))
        return estimates.ratio(all_rows, above, below, crossed, promise)


def _usual(batch: pa.RecordBatch, rows: Floats) -> NDArray[np.bool_]:
    """Tell whether each group's window has as many rows in all as windows usually have."""
    ends = batch.column("window").field("end").cast("int64").to_numpy()
    _, window = np.unique(ends, return_inverse=True)
    total = np.bincount(window, weights=rows)[window]
    return np.asarray((total >= _floats(batch, "least")) & (total <= _floats(batch, "most")))


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


def _collected(batch: pa.RecordBatch, name: str) -> list[tuple[Floats, Floats]]:
    """Return the values of each group, one row of the sample a row, and the weights."""
    column = batch.column(name)
    found = []
    for row in range(len(column)):
        fields = [field.to_numpy(zero_copy_only=False) for field in column[row].values.flatten()]
        found.append((np.stack(fields[:-1], axis=1), fields[-1]))
    return found
