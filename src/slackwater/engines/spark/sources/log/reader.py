"""Plans micro-batches of a log on the driver and reads them on the executors."""

from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.announcements import announce
from slackwater.engines.spark.sources.log.errors import ServerAway, data_gone
from slackwater.engines.spark.sources.log.log import Log, Position, Positions, Stream
from slackwater.engines.spark.sources.log.offsets import Json, LogOffset, still_held
from slackwater.engines.spark.sources.log.options import LogOptions
from slackwater.engines.spark.sources.log.outage import Outage
from slackwater.engines.spark.sources.log.sampling import sampled_batch
from slackwater.engines.spark.sources.log.schemas import arrow_schema
from slackwater.engines.spark.sources.log.shedding import kept_batch
from slackwater.engines.spark.sources.log.spans import Span, spans
from slackwater.engines.spark.sources.process import end_quietly, now_us, spare_collections
from slackwater.engines.spark.sources.row_limits import default_limit, row_limit, split_rows
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, next_ledger
from slackwater.engines.spark.sources.shed_rows import read_shed_plan


class LogReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads any log; a member of the family says how to open its own.

    Spark pickles readers, so all that lives (a connection) is made when first needed.
    """

    def __init__(self, options: LogOptions, schema: StructType) -> None:
        self._options = options
        self._schema = arrow_schema(schema)
        self._outage = Outage(options.server, options.retry_s)
        self._opened: Log | None = None
        self._target: Positions | None = None  # what an available-now run must not pass
        self._announces = False  # in this process
        self._reported: Json | None = None  # the last answer of reportLatestOffset

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_opened": None}

    def _open(self, schema: pa.Schema) -> Log:
        """The log, whose rows have these columns."""
        raise NotImplementedError

    # -- planning -------------------------------------------------------------------------------

    def initialOffset(self) -> Json:
        view = self._outage.outlast(self._log.look)
        at = {
            name: stream.earliest if self._options.start == "earliest" else stream.latest
            for name, stream in view.items()
        }
        horizon_us = 0 if self._options.start == "earliest" else now_us()
        return LogOffset(self._count(at), now_us(), horizon_us, at, is_initial=True).json()

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
        self._announce()
        rows = row_limit(limit, self._options.knob)
        offset = self._parse(start)
        if self._target is not None:
            least = 1 if rows == 0 else rows  # an available-now run would take none for the end
            end = self._outage.outlast(lambda: self._plan(offset, least))
            return start if end is None else end.json()
        if rows == 0:
            return start
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
        as_of_us = self._as_of_us(view)
        self._reported = LogOffset(self._count(latest), as_of_us, as_of_us, latest).json()
        return self._reported

    def _announce(self) -> None:
        if not self._announces and self._options.shed is not None:
            self._announces = True
            announce(self._options.shed, copy(self).reportLatestOffset)  # with a log of its own

    def _as_of_us(self, view: dict[str, Stream]) -> int:
        """When what is in the streams had arrived: rates are worked out from it."""
        return now_us()

    def _plan(self, start: LogOffset, rows: int | None) -> LogOffset | None:
        planned_us = max(now_us(), start.planned_us)
        view = self._visible(start)
        begin = {name: self._begin(name, stream, start) for name, stream in view.items()}
        latest = {name: self._reach(name, stream) for name, stream in view.items()}
        shedding = read_shed_plan(self._options.shed)
        if shedding.rows is not None:
            most = shedding.most(max(self._count(latest) - self._count(begin), 0))
            rows = most if rows is None else min(rows, most)
        at = self._admit(begin, latest, self._fitting(rows, begin), start.rows)
        horizon_us = self._horizon(start, at, latest, planned_us)
        ledger = next_ledger(self._options.plan, start.ledger, horizon_us)
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
            keep=shedding.rates(max(self._count(at) - self._count(begin), 1)),
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

    def _fitting(self, rows: int | None, begin: Positions) -> int | None:
        """A limit, where it is known of the rows that it keeps out when they arrived.

        Where it is not, a window of a sampled source could close without them and not know it.
        """
        is_told = all(self._log.arrived_us(position) is not None for position in begin.values())
        return rows if self._options.plan is None or is_told else None

    def _admit(self, begin: Positions, latest: Positions, rows: int | None, turn: int) -> Positions:
        """How far the micro-batch reads."""
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
        """The time up to which all that arrived is admitted; windows may close up to there."""
        told_us = [self._log.arrived_us(at[name]) for name in at if at[name] != latest[name]]
        behind_us = [planned_us if us is None else us - 1 for us in told_us]
        return max(start.horizon_us, min(behind_us, default=planned_us))

    def _parse(self, offset: Json) -> LogOffset:
        found = LogOffset.parse(offset)
        if found.ledger is not None and self._options.plan is None:
            raise UsageError(
                "the checkpoint was written with sampled=True: give it again, or a new checkpoint"
            )
        return found

    def _count(self, at: Positions) -> int:
        return sum(self._log.ordinal(position) for position in at.values())

    # -- reading --------------------------------------------------------------------------------

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """One for each stream that has rows."""
        return spans(self._parse(start), self._parse(end))

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Span)
        log, name, event_time = self._log, partition.name, self._options.event_time
        spare_collections()
        for segment in partition.segments:
            for rows in log.read(name, segment.first, segment.last):
                if self._options.plan is None or event_time is None:
                    yield kept_batch(rows, partition.keep, self._options.shedding, name)
                else:
                    yield sampled_batch(
                        rows, event_time, segment, partition.ledger, name, self._schema
                    )

    def stop(self) -> None:
        end_quietly()

    @property
    def _log(self) -> Log:
        if self._opened is None:
            own = [field for field in self._schema if field.name != SAMPLE]
            sampled = self._options.plan is not None
            self._opened = self._open(pa.schema(own) if sampled else self._schema)
        return self._opened
