"""What our streaming sources share: options, planning micro-batches, reading rows, directives.

A source is three classes. Its *options* say where rows come from. Its *reader* says where a
micro-batch ends (``_plan_batch``, on the driver) and gives the rows in between (``partitions`` and
``read``, on the executors). Its *source* names both for Spark.

An *offset* is a JSON object. What a micro-batch has follows from its two offsets alone, so that a
replay is exact: whatever was told to the source when it was planned (which rows were withheld,
sampled or shed) is in them. The key ``n`` counts the rows before it, ``t`` is its time in
microseconds, ``s`` the ledger of a sampled source, ``k`` with which probabilities rows were kept.
"""

import time
from abc import abstractmethod
from collections.abc import Mapping, MutableMapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.session.interpreter import use_this_interpreter
from slackwater.engines.spark.session.versions import (
    DataSource,
    DataSourceStreamReader,
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
    arrow_schema,
    refuse_missing_python_sources,
    refuse_untold_start,
)
from slackwater.engines.spark.sources.directives import (
    CountArrived,
    InForce,
    new_directives_path,
    read_directives,
    reply_arrivals,
)
from slackwater.engines.spark.sources.options import parse_texts, write_texts
from slackwater.engines.spark.sources.process import end_quietly
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, sample_column, weigh
from slackwater.engines.spark.sources.shed_rows import Shedding, kept_rows
from slackwater.quality.rates import NO_SHEDDING, KeepRates
from slackwater.sampling.ledger import Ledger, chances

Ints = NDArray[np.int64]
Offset = dict[str, Any]
StreamKey = tuple[int, int]  # tells streams apart: a row's luck is drawn from it and its number


@dataclass(frozen=True, kw_only=True)
class SourceOptions:
    """What all sources can be asked for."""

    rows_per_batch: int | None = None  # static limit; None: none
    knob: str | None = None  # the user's own file with a limit that changes while the query runs
    directives: str | None = None  # file with what the fleet tells the source
    sampled: bool = False  # whether rows carry ``sample``, and may be left out by a plan
    sheddable: bool = False  # whether rows may be dropped
    shed_by: tuple[str, ...] = ()  # columns: rows with the same values go together
    spare: str | None = None  # column, comparison, value: such rows are dropped last

    def __post_init__(self) -> None:
        if self.shedding.looks_at_rows:  # who says how rows are shed wants them shed
            object.__setattr__(self, "sheddable", True)
        if self.rows_per_batch is not None and self.rows_per_batch < 1:
            raise UsageError(f"rows_per_batch must be at least 1, not {self.rows_per_batch}")
        if self.sampled and self.sheddable:
            raise UsageError("a source is either sampled or sheddable, not both")

    @property
    def shedding(self) -> Shedding:
        """Which rows are dropped together, and which last."""
        return Shedding(self.shed_by, self.spare)

    @classmethod
    def from_texts(cls, texts: Mapping[str, str]) -> Self:
        """Read options as Spark hands them over."""
        try:
            return cls(**parse_texts(cls, texts))
        except TypeError as error:
            raise UsageError(f"an option is missing: {error}") from None

    def texts(self) -> dict[str, str]:
        """Write options as Spark takes them."""
        return write_texts(self)

    def with_directives(self) -> Self:
        """Give the source a file where its fleet finds it; without a place for it, no limits."""
        knob = None if self.knob is None else str(Path(self.knob).absolute())
        try:
            return replace(self, knob=knob, directives=self.directives or new_directives_path())
        except (OSError, SlackwaterError):
            if self.sampled or self.sheddable:
                raise
            return replace(self, knob=knob)

    def directives_in_force(self) -> InForce:
        """Read what holds for the next micro-batch; the user's own row limit comes first."""
        now_s = time.time()
        told = read_directives(self.directives).at(now_s)
        return InForce(
            rows=told.rows if self.knob is None else read_directives(self.knob).at(now_s).rows,
            shedding=told.shedding if self.sheddable else NO_SHEDDING,
            sampling=told.sampling if self.sampled else None,
            reach_us=told.reach_us,
        )


class Rows(Protocol):
    """Some rows of one stream, in order, made into columns when asked for."""

    @property
    def numbers(self) -> Ints:
        """Tell the rows of a stream apart, the same whenever they are read."""

    def batch(self, kept: NDArray[np.intp] | None) -> pa.RecordBatch:
        """Make all columns of some rows; None: of all rows."""


class SourceReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Plans micro-batches on the driver and reads them on the executors.

    Spark pickles readers, so all that lives (a connection) is made when first needed.
    """

    _options: SourceOptions

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._target: Any = None  # what an available-now run must not pass
        self._replies = False  # in this process
        self._planned: Offset | None = None  # the end of the last micro-batch

    # -- what a source says ---------------------------------------------------------------------

    @abstractmethod
    def _plan_batch(self, start: Offset, rows: int | None, told: InForce) -> Offset | None:
        """Return the end of the next micro-batch, of at most so many rows; None: nothing is new."""

    @abstractmethod
    def _everything(self) -> Any:
        """Return where an available-now run that begins now must end."""

    @abstractmethod
    def reportLatestOffset(self) -> Offset | None:
        """Return everything that has arrived, whether or not a limit lets it in."""

    # -- what all share -------------------------------------------------------------------------

    def getDefaultReadLimit(self) -> ReadLimit:
        rows = self._options.rows_per_batch
        return ReadAllAvailable() if rows is None else ReadMaxRows(rows)

    def prepareForTriggerAvailableNow(self) -> None:
        self._target = self._everything()

    def latestOffset(self, start: Offset | None = None, limit: ReadLimit | None = None) -> Offset:
        """Return the end of the next micro-batch; ``start`` itself while there is nothing new.

        Before Spark 4.2 neither is told. A batch then begins where the last one ended, and of the
        first one since a start only Spark knows the beginning: it reads all that has come.
        """
        self._start_replying()
        start = start or self._planned
        if start is None:
            self._planned = self.reportLatestOffset() or self.initialOffset()
        else:
            self._planned = self._next_end(start, limit)
        return self._planned

    def _next_end(self, start: Offset, limit: ReadLimit | None) -> Offset:
        told = self._options.directives_in_force()
        limit = limit or self.getDefaultReadLimit()  # before Spark 4.2 nobody asks for it
        rows = least(getattr(limit, "max_rows", None), told.rows)
        if rows == 0:
            if self._target is None:
                return start
            rows = 1  # an available-now run would take none for the end
        end = self._plan_batch(start, rows, told)
        return start if end is None else end

    def stop(self) -> None:
        end_quietly()

    def _shed(self, rows: Rows, stream: StreamKey, keep: KeepRates) -> pa.RecordBatch:
        """Make those rows that are kept; what is dropped unseen is not even made."""
        return kept_rows(rows.batch, keep, self._options.shedding, *stream, rows.numbers)

    def _sample(
        self,
        rows: Rows,
        stream: StreamKey,
        ledger: Ledger | None,
        mine: NDArray[np.intp],
        event_us: Ints,
        arrival_us: Ints,
    ) -> pa.RecordBatch:
        """Make those rows of the micro-batch that are kept, with their sample.

        Parameters
        ----------
        mine
            Places of the rows that belong to the micro-batch; their times follow.
        """
        drawn = chances(*stream, rows.numbers[mine])
        kept, weighed = weigh(ledger, event_us, arrival_us, drawn)
        delays_us = np.maximum(arrival_us[kept] - event_us[kept], 0)
        sample = sample_column(weighed, kept, delays_us)
        sample = sample.cast(self._schema.field(SAMPLE).type)
        batch = rows.batch(mine[kept])
        names = self._schema.names
        columns = [sample if name == SAMPLE else batch.column(name) for name in names]
        return pa.RecordBatch.from_arrays(columns, schema=self._schema)

    @property
    def _own_schema(self) -> pa.Schema:
        """The columns that a source makes itself."""
        if not self._options.sampled:
            return self._schema
        return pa.schema([field for field in self._schema if field.name != SAMPLE])

    def _start_replying(self) -> None:
        if not self._replies and self._options.sheddable and self._options.directives is not None:
            self._replies = True
            reply_arrivals(self._options.directives, self._counter())

    def _counter(self) -> CountArrived:
        """Return what counts arrived rows in another thread, with all that lives of its own."""
        return copy(self).reportLatestOffset


class Source(DataSource):
    """A data source of ours, as Spark knows it."""

    FORMAT: ClassVar[str]
    OPTIONS: ClassVar[type[SourceOptions]]
    READER: ClassVar[type[SourceReader]]
    FOLLOWS_CLOCK: ClassVar[bool] = False  # whether an offset follows from the time alone

    @classmethod
    def name(cls) -> str:
        return cls.FORMAT

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._options = self.OPTIONS.from_texts(options)

    def streamReader(self, schema: StructType) -> SourceReader:
        return self.READER(self._options, schema)


def load(
    spark: SparkSession,
    source: type[Source],
    options: SourceOptions,
    columns: StructType | None = None,
) -> DataFrame:
    """Return the rows of a source, which is registered for the session."""
    refuse_missing_python_sources(source.FORMAT)
    if options.sampled or not source.FOLLOWS_CLOCK:
        refuse_untold_start(source.FORMAT)
    use_this_interpreter(spark)
    spark.dataSource.register(source)
    reader = spark.readStream.format(source.name())
    if columns is not None:
        reader = reader.schema(columns)
    return reader.options(**options.with_directives().texts()).load()


def least(*limits: int | None) -> int | None:
    """Return the smallest limit; None: none.

    >>> least(5, None), least(None, None)
    (5, None)
    """
    return min((rows for rows in limits if rows is not None), default=None)
