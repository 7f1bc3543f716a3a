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
from collections.abc import Iterator, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.interpreter import use_this_interpreter
from slackwater.engines.spark.sources.announcements import announce
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.engines.spark.sources.knobs import knob_option
from slackwater.engines.spark.sources.process import end_quietly, now_us, spare_collections
from slackwater.engines.spark.sources.row_limits import default_limit, row_limit
from slackwater.engines.spark.sources.sampled_rows import (
    SAMPLE,
    new_plan_path,
    next_ledger,
    sample_column,
    weigh,
)
from slackwater.engines.spark.sources.shed_rows import (
    Shedding,
    kept_by_content,
    kept_by_number,
    new_shed_path,
    read_shed_plan,
    row_luck,
)
from slackwater.quality.rates import EVERYTHING, KeepRates
from slackwater.sampling.ledger import Ledger, chances
from slackwater.traffic import Arrivals, Reach, Timeline, Traffic

FORMAT = "slackwater-feed"

_ROWS_PER_ARROW_BATCH = 20_000

Offset = dict[str, Any]


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
    """A streaming DataFrame of seeded traffic.

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
        plan=new_plan_path() if sampled else None,
        shed=new_shed_path() if sheddable or shed_by or spare else None,
        shedding=Shedding(tuple(shed_by), spare),
    )
    return load_feed(spark, options)


def load_feed(spark: SparkSession, options: FeedOptions) -> DataFrame:
    """The streaming DataFrame of a feed whose options are put together already."""
    options.payload()
    options.shedding.check(_columns(options))
    use_this_interpreter(spark)
    spark.dataSource.register(FeedSource)
    texts = options.texts() | knob_option(options.knob)
    return spark.readStream.format(FORMAT).options(**texts).load()


class FeedSource(DataSource):
    """The data source ``slackwater-feed``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._feed = FeedOptions.from_texts(options)

    def schema(self) -> str:
        return self._feed.schema()

    def streamReader(self, schema: StructType) -> "FeedReader":
        return FeedReader(self._feed, schema)


@dataclass(frozen=True)
class FeedPartition(InputPartition):
    """The rows of one partition of the traffic within a reach and not within an earlier one."""

    partition: int
    after: Reach
    until: Reach
    ledger: Ledger | None = None
    keep: KeepRates = EVERYTHING


class FeedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver and reads them on the executors."""

    def __init__(self, options: FeedOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._ceiling_us: int | None = None  # time that an available-now run must not pass
        self._announces = False  # in this process
        self._checked = False  # whether the first offset seen agreed with the options

    def initialOffset(self) -> Offset:
        return {"t": self._timeline.start_us - 1, "n": 0}

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_limit(self._options.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        self._ceiling_us = now_us()

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:
        """The end of the next micro-batch; ``start`` itself while nothing new has arrived."""
        self._check(start)
        self._announce()
        until_us = self._horizon_us()
        rows = row_limit(limit, self._options.knob)
        if rows == 0 and self._ceiling_us is None:  # a run-once query would take it for the end
            return start
        shedding = read_shed_plan(self._options.shed)
        if shedding.rows is not None:
            most = shedding.most(self._timeline.count(until_us) - start["n"])
            rows = most if rows is None else min(rows, most)
        if rows is not None and until_us > start["t"]:
            until_us = self._timeline.cut(start["t"], until_us, rows)
        end = self._offset(until_us) | self._sampling(start, until_us)
        rates = shedding.rates(max(end["n"] - start["n"], 1))
        if rates.sheds:  # in the offset, so that a replay sheds the same rows
            end["k"] = rates.numbers
        handed_out = self._timeline.handed_out
        return end if handed_out(_reach(end)) > handed_out(_reach(start)) else start

    def reportLatestOffset(self) -> Offset:
        """Everything that has arrived, whether or not a limit lets it in."""
        return self._offset(self._horizon_us())

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """One for each partition of the traffic that has rows."""
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
        arrivals = self._timeline.released(partition.after, partition.until, partition.partition)
        schema = to_arrow_schema(self._schema, timezone="UTC")
        for first in range(0, len(arrivals), _ROWS_PER_ARROW_BATCH):
            chunk = arrivals.part(slice(first, first + _ROWS_PER_ARROW_BATCH))
            yield self._record_batch(partition, chunk, schema)

    def _record_batch(
        self, partition: FeedPartition, arrivals: Arrivals, schema: pa.Schema
    ) -> pa.RecordBatch:
        sample = None
        if self._options.plan is not None:
            arrivals, sample = self._sample(partition, arrivals)
        seed, shedding = self._options.traffic.seed, self._options.shedding
        place, keep = partition.partition, partition.keep
        if keep.sheds and not shedding.looks_at_rows:  # those that are dropped are never made
            arrivals = arrivals.part(kept_by_number(keep, seed, place, arrivals.index))
        payload = self._options.payload()
        columns = payload.columns(partition.partition, arrivals.index)
        columns[payload.event_time] = _timestamps(arrivals.event_us)
        if self._options.arrival:
            columns["arrival_time"] = _timestamps(arrivals.arrival_us)
        if sample is not None:
            columns[SAMPLE] = sample.cast(schema.field(SAMPLE).type)
        made = pa.RecordBatch.from_arrays([columns[n] for n in schema.names], schema=schema)
        if keep.sheds and shedding.looks_at_rows:
            luck = row_luck(seed, place, arrivals.index)
            made = made.take(pa.array(kept_by_content(keep, shedding, made, luck)))
        return made

    def _sample(self, partition: FeedPartition, arrivals: Arrivals) -> tuple[Arrivals, pa.Array]:
        """The rows that are kept, and their column ``sample``; the others are never made."""
        drawn = chances(self._options.traffic.seed, partition.partition, arrivals.index)
        kept, weighed = weigh(partition.ledger, arrivals.event_us, arrivals.arrival_us, drawn)
        part = arrivals.part(kept)
        return part, sample_column(weighed, kept, part.arrival_us - part.event_us)

    def stop(self) -> None:
        end_quietly()

    @property
    def _timeline(self) -> Timeline:
        return _timeline(self._options.traffic)

    def _horizon_us(self) -> int:
        now = now_us()
        return now if self._ceiling_us is None else min(now, self._ceiling_us)

    def _offset(self, until_us: int) -> Offset:
        return {"t": until_us, "n": self._timeline.count(until_us)}

    def _sampling(self, start: Offset, until_us: int) -> Offset:
        """The ledger of the next offset, if there is a plan or was one.

        Windows close by what was read, not by the clock: a limit may have left rows behind.
        """
        ledger = next_ledger(self._options.plan, _ledger(start), until_us)
        return {} if ledger is None else {"s": ledger.to_json()}

    def _announce(self) -> None:
        if self._announces or self._options.shed is None:
            return
        self._announces = True
        timeline = self._options.traffic.timeline()  # of the other thread alone

        def look() -> Offset:
            now = now_us()
            return {"t": now, "n": timeline.count(now)}

        announce(self._options.shed, look)

    def _check(self, offset: Offset) -> None:
        """Refuse a checkpoint of other traffic: its rows could not be replayed."""
        if not self._checked and self._timeline.count(offset["t"]) != offset["n"]:
            raise UsageError(
                "the checkpoint was written with other traffic: give the feed the same start, "
                "stop, rate, delays, partitions and seed, or a new checkpoint folder"
            )
        self._checked = True


def _columns(options: FeedOptions) -> list[str]:
    return [part.split()[0] for part in options.schema().split(", ")]


def _ledger(offset: Offset) -> Ledger | None:
    return Ledger.of_json(offset["s"]) if "s" in offset else None


def _reach(offset: Offset) -> Reach:
    return Reach(offset["t"], offset["s"]["ceiling"]) if "s" in offset else Reach(offset["t"])


def _timestamps(microseconds: NDArray[np.int64]) -> pa.Array:
    return pa.array(microseconds).view(pa.timestamp("us", tz="UTC"))


@lru_cache(maxsize=32)  # the timeline remembers blocks that the next micro-batch needs again
def _timeline(traffic: Traffic) -> Timeline:
    return traffic.timeline()
