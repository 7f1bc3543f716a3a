"""A streaming source of seeded traffic: replayable from any offset, limited from outside.

An offset is ``{"t": arrival time in microseconds, "n": rows arrived up to then}``. The rows
between two offsets are those that arrive after the first and up to the second, so they follow
from the options alone. The backlog in rows is the ``n`` of the latest offset less that of the
end offset in Spark's progress. Where rows are sampled, an offset has also a ledger, ``"s"``: its
ceiling withholds rows for a later batch, and its plans say which rows are kept. Where rows are
shed, it has the probabilities with which they were kept, ``"k"``.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession

from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.versions import InputPartition
from slackwater.engines.spark.sources.base import (
    Ints,
    Offset,
    Source,
    SourceReader,
    least,
    load,
)
from slackwater.engines.spark.sources.directives import CountArrived, InForce
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.process import now_us, spare_collections
from slackwater.engines.spark.sources.sampled_rows import next_ledger
from slackwater.quality.rates import EVERYTHING, KeepRates
from slackwater.sampling.ledger import Ledger
from slackwater.traffic import Arrivals, Reach, Timeline, Traffic

_ROWS_PER_ARROW_BATCH = 20_000


def feed(
    spark: SparkSession,
    generator: str,
    *,
    arguments: Mapping[str, Any] | None = None,
    rate: str = Traffic.rate,
    delays: str = Traffic.delays,
    partitions: int = Traffic.partitions,
    seed: int = Traffic.seed,
    start: float | None = None,
    stop: float | None = None,
    rows_per_batch: int | None = None,
    knob: str | Path | None = None,
    arrival: bool = False,
    gaps: str = Traffic.gaps,
    sampled: bool = False,
    sheddable: bool = False,
    shed_by: Sequence[str] = (),
    spare: str | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of seeded traffic.

    Parameters
    ----------
    generator, arguments
        ``module:Class`` of a payload generator and the arguments to build it with.
    rate, delays, partitions, seed, gaps
        See :class:`slackwater.traffic.Traffic`.
    start, stop
        First event time and the end of events, seconds since the epoch. Give ``start`` to
        resume from a checkpoint; without it the traffic starts now.
    rows_per_batch
        Most rows in a micro-batch.
    knob
        A JSON file of your own, ``{"rows": number or null}``, read before every micro-batch, that
        limits its rows; 0 holds only together with ``"until"``, a time (seconds since the epoch)
        not yet reached. A missing or broken file limits nothing. Without it the fleet limits
        batches as its policy says.
    arrival
        Whether rows carry the column ``arrival_time``.
    sampled
        Whether the feed is for :meth:`Fleet.approximate`: rows then carry the column ``sample``,
        which must be kept up to there.
    sheddable
        Whether rows may be dropped when input outgrows the machines: for queries that are started
        with a ``min_accuracy``.
    shed_by
        Columns: rows with the same values there are kept or dropped together.
    spare
        ``column comparison value``, as ``amount >= 100``: such rows are dropped last.

    Raises
    ------
    UsageError
        When an option is wrong, before Spark is asked.
    """
    traffic = Traffic(
        start_s=float(int(time.time())) if start is None else start,
        stop_s=stop,
        rate=rate,
        delays=delays,
        partitions=partitions,
        seed=seed,
        gaps=gaps,
    )
    options = FeedOptions(
        traffic=traffic,
        generator=generator,
        arguments=json.dumps(dict(arguments or {}), sort_keys=True),
        rows_per_batch=rows_per_batch,
        knob=None if knob is None else str(knob),
        arrival=arrival,
        sampled=sampled,
        sheddable=sheddable,
        shed_by=tuple(shed_by),
        spare=spare,
    )
    return load_feed(spark, options)


def load_feed(spark: SparkSession, options: FeedOptions) -> DataFrame:
    """Return the streaming DataFrame of a feed whose options are put together already."""
    options.payload()
    options.shedding.check([column.split()[0] for column in options.schema().split(", ")])
    return load(spark, FeedSource, options)


@dataclass(frozen=True)
class FeedPartition(InputPartition):
    """The rows of one partition of the traffic within a reach and not within an earlier one."""

    partition: int
    after: Reach
    until: Reach
    ledger: Ledger | None = None
    keep: KeepRates = EVERYTHING


class FeedReader(SourceReader):
    """Reads traffic that follows from the options alone."""

    _options: FeedOptions
    _checked = False  # whether the first offset seen agreed with the options

    def initialOffset(self) -> Offset:
        return {"t": self._timeline.start_us - 1, "n": 0}

    def reportLatestOffset(self) -> Offset:
        return self._offset(self._horizon_us())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return one for each partition of the traffic that has rows."""
        self._check(start)
        after, until, ledger = _reach(start), _reach(end), _ledger(end)
        count = self._timeline.handed_out
        everyone = range(self._timeline.partitions)
        busy = [p for p in everyone if len(everyone) == 1 or count(until, p) > count(after, p)]
        keep = KeepRates.of_numbers(end.get("k"))
        return [FeedPartition(p, after, until, ledger, keep) for p in busy or [0]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, FeedPartition)
        self._options.payload()
        spare_collections()
        stream = self._options.traffic.seed, partition.partition
        arrivals = self._timeline.released(partition.after, partition.until, partition.partition)
        for first in range(0, len(arrivals), _ROWS_PER_ARROW_BATCH):
            part = arrivals.part(slice(first, first + _ROWS_PER_ARROW_BATCH))
            rows = FeedRows(self._options, self._own_schema, partition.partition, part)
            if self._options.sampled:
                times = np.arange(len(part)), part.event_us, part.arrival_us
                yield self._sample(rows, stream, partition.ledger, *times)
            else:
                yield self._shed(rows, stream, partition.keep)

    def _plan_batch(self, start: Offset, rows: int | None, told: InForce) -> Offset | None:
        self._check(start)
        until_us = max(self._horizon_us(), told.reach_us)
        if told.shedding.rows is not None:
            rows = least(rows, told.shedding.most(self._timeline.count(until_us) - start["n"]))
        if rows is not None and until_us > start["t"]:
            until_us = self._timeline.cut(start["t"], until_us, rows)
        end = self._offset(until_us)
        # Windows close by what was read, not by the clock: a limit may have left rows behind.
        ledger = next_ledger(told.sampling, _ledger(start), until_us)
        if ledger is not None:
            end["s"] = ledger.to_json()
        rates = told.shedding.rates(max(end["n"] - start["n"], 1))
        if rates.sheds:
            end["k"] = rates.numbers
        handed_out = self._timeline.handed_out
        return end if handed_out(_reach(end)) > handed_out(_reach(start)) else None

    def _everything(self) -> int:
        return now_us()

    def _counter(self) -> CountArrived:
        timeline = self._options.traffic.timeline()  # of the other thread alone

        def count() -> Offset:
            now = now_us()
            return {"t": now, "n": timeline.count(now)}

        return count

    @property
    def _timeline(self) -> Timeline:
        return _timeline(self._options.traffic)

    def _horizon_us(self) -> int:
        now = now_us()
        return now if self._target is None else min(now, self._target)

    def _offset(self, until_us: int) -> Offset:
        return {"t": until_us, "n": self._timeline.count(until_us)}

    def _check(self, offset: Offset) -> None:
        """Refuse a checkpoint of other traffic: its rows could not be replayed."""
        if not self._checked and self._timeline.count(offset["t"]) != offset["n"]:
            raise UsageError(
                "the checkpoint was written with other traffic: give the feed the same start, "
                "stop, rate, delays, partitions and seed, or a new checkpoint folder"
            )
        self._checked = True


class FeedRows:
    """Events of one partition of the traffic."""

    def __init__(
        self, options: FeedOptions, schema: pa.Schema, partition: int, arrivals: Arrivals
    ) -> None:
        self._options = options
        self._schema = schema
        self._partition = partition
        self._arrivals = arrivals

    @property
    def numbers(self) -> Ints:
        return self._arrivals.index

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        arrivals = self._arrivals if kept is None else self._arrivals.part(kept)
        payload = self._options.payload()
        columns = payload.columns(self._partition, arrivals.index)
        columns[payload.event_time] = _timestamps(arrivals.event_us)
        if self._options.arrival:
            columns["arrival_time"] = _timestamps(arrivals.arrival_us)
        arrays = [self._column(columns, field) for field in self._schema]
        return pa.RecordBatch.from_arrays(arrays, schema=self._schema)

    def _column(self, columns: Mapping[str, pa.Array], field: pa.Field) -> pa.Array:
        """Return one column as the schema has it; refuse a generator that made another."""
        column = columns.get(field.name)
        if column is None:
            raise UsageError(f"{self._options.generator} makes no column {field.name!r}")
        try:
            return column.cast(field.type)
        except pa.ArrowException:
            raise UsageError(
                f"{self._options.generator} makes {field.name!r} as {column.type}, which its "
                f"schema has as {field.type}"
            ) from None


class FeedSource(Source):
    """The data source ``slackwater-feed``."""

    FORMAT, OPTIONS, READER = "slackwater-feed", FeedOptions, FeedReader
    FOLLOWS_CLOCK = True
    _options: FeedOptions

    def schema(self) -> str:
        return self._options.schema()


def _ledger(offset: Offset) -> Ledger | None:
    return Ledger.of_json(offset["s"]) if "s" in offset else None


def _reach(offset: Offset) -> Reach:
    return Reach(offset["t"], offset["s"]["ceiling"]) if "s" in offset else Reach(offset["t"])


def _timestamps(microseconds: Ints) -> pa.Array:
    return pa.array(microseconds).view(pa.timestamp("us", tz="UTC"))


@lru_cache(maxsize=32)  # the timeline remembers blocks that the next micro-batch needs again
def _timeline(traffic: Traffic) -> Timeline:
    return traffic.timeline()
