"""Plans micro-batches of a log on the driver and reads them on the executors."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from slackwater.core.errors import UsageError
from slackwater.engines.spark.admission import default_limit, row_limit, split_rows
from slackwater.engines.spark.logs.errors import ServerAway, data_gone
from slackwater.engines.spark.logs.log import Log, Position, Positions, Rows, Stream
from slackwater.engines.spark.logs.offsets import Json, LogOffset, still_held
from slackwater.engines.spark.logs.options import LogOptions
from slackwater.engines.spark.logs.outage import Outage
from slackwater.engines.spark.logs.spans import ALWAYS_US, Segment, Span, spans
from slackwater.engines.spark.source_process import end_quietly, now_us, spare_collections


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads any log; a member of the family says how to open its own.

    Spark pickles readers, so all that lives (a connection) is made when first needed.
    """

    def __init__(self, options: LogOptions, server: str) -> None:
        self._options = options
        self._outage = Outage(server, options.retry_s)
        self._opened: Log | None = None
        self._target: Positions | None = None  # what an available-now run must not pass
        self._reported: Json | None = None  # the last answer of reportLatestOffset

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    def _open(self) -> Log:
        raise NotImplementedError

    # -- planning -------------------------------------------------------------------------------

    def initialOffset(self) -> Json:
        view = self._outage.outlast(self._log.look)
        at = {
            name: stream.earliest if self._options.start == "earliest" else stream.latest
            for name, stream in view.items()
        }
        return LogOffset(self._ordinals(at), now_us(), at, is_initial=True).json()

    def getDefaultReadLimit(self) -> ReadLimit:
        return default_limit(self._options.rows_per_batch)

    def prepareForTriggerAvailableNow(self) -> None:
        view = self._outage.outlast(self._log.look)
        self._target = {name: stream.latest for name, stream in view.items()}

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """The end of the next micro-batch; ``start`` itself while there is nothing new.

        While the server is away the stream stands still. Waiting here would keep a slot of the
        fleet from other queries; only a run that ends when nothing is new has to wait.
        """
        rows = row_limit(limit, self._options.knob)
        if rows == 0 and self._target is None:  # a run-once query would take it for the end
            return start
        offset = LogOffset.parse(start)
        if self._target is not None:
            end = self._outage.outlast(lambda: self._plan(offset, rows))
            return start if end is None else end.json()
        try:
            end = self._plan(offset, rows)
        except ServerAway as error:
            self._outage.note(error)
            return start
        self._outage.over()
        return start if end is None else end.json()

    def reportLatestOffset(self) -> Json | None:
        """Everything that has arrived, whether or not a limit lets it in."""
        try:
            view = self._log.look()
        except ServerAway:  # a progress report is nothing to fail for
            return self._reported
        latest = {name: self._reach(name, stream) for name, stream in view.items()}
        self._reported = LogOffset(self._ordinals(latest), now_us(), latest).json()
        return self._reported

    def _plan(self, start: LogOffset, rows: int | None) -> LogOffset | None:
        view = self._visible(start)
        begin = {name: self._begin(name, stream, start) for name, stream in view.items()}
        latest = {name: self._reach(name, stream) for name, stream in view.items()}
        at = self._admit(begin, latest, rows, start.rows)
        planned_us = max(now_us(), start.planned_us)
        ceiling_us = start.ceiling_us
        if at == begin and ceiling_us == start.ceiling_us:
            return None
        return LogOffset(
            rows=self._ordinals(at),
            planned_us=planned_us,
            at=at,
            begin={n: p for n, p in begin.items() if start.is_initial or start.at.get(n) != p},
            ceiling_us=ceiling_us,
            held=still_held(start, begin, planned_us, ceiling_us),
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
        """Where to read on. A stream that was not there before is read from its beginning."""
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
        """The end of a stream, but not past an available-now run's target."""
        if self._target is None or name not in self._target:
            return stream.latest
        return min(self._target[name], stream.latest, key=self._log.ordinal)

    def _admit(self, begin: Positions, latest: Positions, rows: int | None, turn: int) -> Positions:
        """How far the micro-batch reads."""
        count = self._log.ordinal
        waiting = [max(0, count(latest[name]) - count(begin[name])) for name in begin]
        if rows is None or sum(waiting) <= rows:
            shares = waiting
        else:
            shares = split_rows(rows, waiting, turn)
        return {
            name: self._go(name, begin[name], latest[name], share, backlog)
            for name, share, backlog in zip(begin, shares, waiting, strict=True)
        }

    def _go(
        self, name: str, first: Position, latest: Position, share: int, backlog: int
    ) -> Position:
        if share == 0:
            return first
        return latest if share == backlog else self._log.advance(name, first, share)

    def _ordinals(self, at: Positions) -> int:
        return sum(self._log.ordinal(position) for position in at.values())

    # -- reading --------------------------------------------------------------------------------

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """One for each stream that has rows."""
        return spans(LogOffset.parse(start), LogOffset.parse(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        log = self._log
        spare_collections()
        for segment in partition.segments:
            for rows in log.read(partition.name, segment.first, segment.last):
                batch = self._hand_out(rows, segment)
                if batch.num_rows:
                    yield batch

    def _hand_out(self, rows: Rows, segment: Segment) -> pa.RecordBatch:
        """The rows of a segment that belong to the micro-batch."""
        if segment.takes_all or self._options.event_time is None:
            return rows.batch
        event_us = event_times(rows.batch.column(self._options.event_time))
        return rows.batch.filter(pa.array(segment.takes(event_us)))

    def stop(self) -> None:
        end_quietly()

    @property
    def _log(self) -> Log:
        if self._opened is None:
            self._opened = self._open()
        return self._opened


def event_times(column: pa.Array) -> NDArray[np.int64]:
    """Microseconds since the epoch of a column of timestamps."""
    known = pc.fill_null(column.cast(pa.int64()), int(ALWAYS_US))
    times: NDArray[np.int64] = known.to_numpy(zero_copy_only=False)
    return times
