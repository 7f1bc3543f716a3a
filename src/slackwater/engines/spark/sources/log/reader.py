"""Plans micro-batches of a log on the driver and reads them on the executors."""

import zlib
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.versions import InputPartition
from slackwater.engines.spark.sources.base import Ints, Offset, SourceReader, least
from slackwater.engines.spark.sources.directives import InForce
from slackwater.engines.spark.sources.log.log import (
    Log,
    LogOptions,
    LogRows,
    Outage,
    Position,
    Positions,
    ServerAway,
    Stream,
    data_gone,
)
from slackwater.engines.spark.sources.log.offsets import (
    LogOffset,
    ReadRange,
    Span,
    spans,
    still_held,
)
from slackwater.engines.spark.sources.process import now_us, spare_collections
from slackwater.engines.spark.sources.row_limits import split_rows
from slackwater.engines.spark.sources.sampled_rows import next_ledger


class LogReader(SourceReader):
    """Reads any log; a member of the family says how to open its own."""

    _options: LogOptions

    def __init__(self, options: LogOptions, schema: StructType) -> None:
        super().__init__(options, schema)
        self._outage = Outage(options.server, options.retry_s)
        self._opened: Log | None = None
        self._reported: Offset | None = None  # the last answer of reportLatestOffset

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    @abstractmethod
    def _open(self, schema: pa.Schema) -> Log:
        """Return the log, whose rows have these columns."""

    # -- planning -------------------------------------------------------------------------------

    def initialOffset(self) -> Offset:
        view = self._outage.outlast(self._log.look)
        at = {
            name: stream.earliest if self._options.start == "earliest" else stream.latest
            for name, stream in view.items()
        }
        horizon_us = 0 if self._options.start == "earliest" else now_us()
        return LogOffset(self._count(at), now_us(), horizon_us, at, is_initial=True).json()

    def reportLatestOffset(self) -> Offset | None:
        try:
            view = self._log.look()
        except ServerAway:  # a progress report is nothing to fail for
            return self._reported
        latest = {name: self._reach(name, stream) for name, stream in view.items()}
        as_of_us = self._as_of_us(view)
        self._reported = LogOffset(self._count(latest), as_of_us, as_of_us, latest).json()
        return self._reported

    def _everything(self) -> Positions:
        view = self._outage.outlast(self._log.look)
        return {name: stream.latest for name, stream in view.items()}

    def _as_of_us(self, view: dict[str, Stream]) -> int:
        """Return when what is in the streams had arrived: rates are worked out from it."""
        return now_us()

    def _plan_batch(self, start: Offset, rows: int | None, told: InForce) -> Offset | None:
        """Plan; while the server is away the stream stands still.

        Waiting here would keep a slot of the fleet from other queries. Who has to wait all the same
        is a run that ends when nothing is new, and a batch whose watermark may have been raised to
        what has arrived: without those rows it would close their windows, and drop them later.
        """
        offset = self._parse(start)
        if self._target is not None or told.reach_us > offset.planned_us:
            end = self._outage.outlast(lambda: self._plan(offset, rows, told))
        else:
            try:
                end = self._plan(offset, rows, told)
            except ServerAway as error:
                self._outage.note(error)
                return None
            self._outage.over()
        return None if end is None else end.json()

    def _plan(self, start: LogOffset, rows: int | None, told: InForce) -> LogOffset | None:
        planned_us = max(now_us(), start.planned_us)
        view = self._visible(start)
        begin = {name: self._begin(name, stream, start) for name, stream in view.items()}
        latest = {name: self._reach(name, stream) for name, stream in view.items()}
        if told.shedding.rows is not None:
            waiting = max(self._count(latest) - self._count(begin), 0)
            rows = least(rows, told.shedding.most(waiting))
        at = self._admit(begin, latest, self._fitting(rows, begin), start.rows)
        horizon_us = self._horizon(start, at, latest, planned_us)
        ledger = next_ledger(told.sampling, start.ledger, horizon_us)
        ceiling_us = None if ledger is None else ledger.ceiling_us
        if at == begin and (ceiling_us == start.ceiling_us or not start.held):
            return None
        return LogOffset(
            rows=self._count(at),
            planned_us=planned_us,
            horizon_us=horizon_us,
            at=at,
            begin={n: p for n, p in begin.items() if start.is_initial or start.at.get(n) != p},
            ledger=ledger,
            held=still_held(start, begin, at, planned_us, ceiling_us),
            keep=told.shedding.rates(max(self._count(at) - self._count(begin), 1)),
        )

    def _visible(self, start: LogOffset) -> dict[str, Stream]:
        view = self._log.look()
        if self._target is not None:
            known = self._target.keys() | start.at.keys()
            view = {name: stream for name, stream in view.items() if name in known}
        unknown = ", ".join(sorted(start.at.keys() - view.keys()))
        if unknown and self._options.fail_on_data_loss:
            raise UsageError(
                f"the checkpoint also reads {unknown}, which is not named now or no longer there: "
                "name it again, use a new checkpoint folder, or set fail_on_data_loss=False"
            )
        return view

    def _begin(self, name: str, stream: Stream, start: LogOffset) -> Position:
        """Return where to read on; a stream that was not there before is read from the start."""
        if name not in start.at:
            return stream.earliest
        position = start.at[name]
        missing = stream.missing_after(position)
        if missing == 0:
            return position
        if self._options.fail_on_data_loss:
            raise data_gone(name, "rows" if missing is None else f"{missing} rows")
        return stream.resume(position)

    def _reach(self, name: str, stream: Stream) -> Position:
        """Return the end of a stream, but not past an available-now run's target."""
        if self._target is None or name not in self._target:
            return stream.latest
        return min(self._target[name], stream.latest, key=self._log.ordinal)

    def _fitting(self, rows: int | None, begin: Positions) -> int | None:
        """Return a limit, where it is known of the rows that it keeps out when they arrived.

        Where it is not, a window of a sampled source could close without them and not know it.
        """
        is_told = all(self._log.arrived_us(position) is not None for position in begin.values())
        return rows if not self._options.sampled or is_told else None

    def _admit(self, begin: Positions, latest: Positions, rows: int | None, turn: int) -> Positions:
        """Return how far the micro-batch reads."""
        count = self._log.ordinal
        waiting = [max(0, count(latest[name]) - count(begin[name])) for name in begin]
        shares = waiting if rows is None else split_rows(rows, waiting, turn)
        at = {}
        for name, share, backlog in zip(begin, shares, waiting, strict=True):
            if share == 0:
                at[name] = begin[name]
            elif share == backlog:
                at[name] = latest[name]
            else:
                at[name] = self._log.advance(name, begin[name], share)
        return at

    def _horizon(self, start: LogOffset, at: Positions, latest: Positions, planned_us: int) -> int:
        """Return up to when all that arrived is admitted; windows may close up to there."""
        told_us = [self._log.arrived_us(at[name]) for name in at if at[name] != latest[name]]
        behind_us = [planned_us if us is None else us - 1 for us in told_us]
        return max(start.horizon_us, min(behind_us, default=planned_us))

    def _parse(self, offset: Offset) -> LogOffset:
        found = LogOffset.parse(offset)
        if found.ledger is not None and not self._options.sampled:
            raise UsageError(
                "the checkpoint was written with sampled=True: give it again, or a new checkpoint"
            )
        return found

    def _count(self, at: Positions) -> int:
        return sum(self._log.ordinal(position) for position in at.values())

    def newest_us(self, column: str, after: Offset) -> int | None:
        """Return the largest time among the newest rows of each stream after an offset.

        None: nothing is new. All that is looked at is read by the next micro-batch without a limit.
        """
        kind = self._schema.field(column).type
        found = self._log.newest(column, self._parse(after).at)
        times = [pc.max(values.cast(kind).cast(pa.int64())).as_py() for values in found]
        return max((us for us in times if us is not None), default=None)

    def planned_us(self, after: Offset) -> int:
        """Return when the micro-batch was planned that ends there."""
        return self._parse(after).planned_us

    # -- reading --------------------------------------------------------------------------------

    def partitions(self, start: Offset, end: Offset) -> Sequence[InputPartition]:
        """Return one for each stream that has rows."""
        return spans(self._parse(start), self._parse(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        spare_collections()
        stream = 0, zlib.crc32(partition.name.encode())
        for part in partition.ranges:
            for rows in self._log.read(partition.name, part.first, part.last):
                if self._options.sampled:
                    times = self._times(rows, part)
                    yield self._sample(rows, stream, partition.ledger, *times)
                else:
                    yield self._shed(rows, stream, partition.keep)

    def _times(self, rows: LogRows, part: ReadRange) -> tuple[NDArray[np.intp], Ints, Ints]:
        """Return which rows belong to the micro-batch, and their event and arrival times.

        Rows without an event time are left out: they belong to no window.
        """
        assert self._options.event_time is not None
        column = rows.column(self._options.event_time)
        event_us = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        mine = np.flatnonzero(part.takes(event_us) & column.is_valid().to_numpy(False))
        arrival_us = part.arrivals(rows.arrival_us, len(rows.numbers))
        return mine, event_us[mine], arrival_us[mine]

    @property
    def _log(self) -> Log:
        if self._opened is None:
            self._opened = self._open(self._own_schema)
        return self._opened
