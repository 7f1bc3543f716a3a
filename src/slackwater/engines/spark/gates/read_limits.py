"""Limits what a held query reads from sources that are not ours.

For every source with admission control Spark keeps a limit, and hands it over when it asks how far
the next batch goes. While the query stands at its gate the limits can be other ones. Spark's rate
source has none: it reads up to the time, so its clock is stopped earlier.
"""

import contextlib
import logging

from pyspark.sql import SparkSession

from slackwater.common.exceptions import first_line
from slackwater.core.clock import RealClock
from slackwater.engines.spark.gates.limited_sources import AdmittedSource, Extent, admitted_source
from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.engines.spark.plans.event_time import has_watermark
from slackwater.engines.spark.session.versions import reads_stream

log = logging.getLogger("slackwater.fleet")

_STREAMING = "org.apache.spark.sql.execution.streaming"
_RATE = "RateStreamMicroBatchStream"
_NEEDED = (
    ("StreamExecution", "uniqueSources"),
    ("FileStreamSource", "unreadFiles"),
    ("FileStreamSource", "sourceOptions"),
    (f"{_STREAMING}.sources.{_RATE}", "clock"),
    (f"{_STREAMING}.sources.{_RATE}", "rowsPerSecond"),
)


def probe(spark: SparkSession) -> str | None:
    """Return why rows of Spark's own sources cannot be limited here; ``None`` when they can."""
    try:
        handles = Handles(spark)
        for owner, field in _NEEDED:
            handles.type(owner).getDeclaredField(field)
    except Exception as error:
        return f"Spark {spark.version} lacks a private field ({first_line(str(error))})"
    return None


class RateSource:
    """Spark's rate source, which reads up to the time of its clock, in whole seconds."""

    def __init__(self, handles: Handles, execution: JavaObject, source: JavaObject) -> None:
        self._handles = handles
        self._execution = execution
        self._source = source
        self._place = int(execution.sources().indexOf(source))
        self._created_ms = int(source.creationTimeMs())
        self._rate = int(self._field("rowsPerSecond").get(source))
        self._clock = self._field("clock")
        self._own_clock = self._clock.get(source)
        self._wall = RealClock()
        self._limited = False

    def limit_to(self, rows: int) -> None:
        """Stop its clock so that about so many rows are read, a second's at least."""
        read_s = self._read_s()
        if read_s is None:
            self.lift()
            return
        until_s = read_s + (max(1, rows // self._rate) if rows else 0)
        until_ms = self._created_ms + 1000 * until_s
        if until_ms >= self._now_ms():
            self.lift()
            return
        clock = self._handles.spark.util.ManualClock(until_ms)
        self._clock.set(self._source, clock)
        self._limited = True

    def lift(self) -> None:
        """Let its clock go on."""
        if self._limited:
            self._clock.set(self._source, self._own_clock)
            self._limited = False

    def left_rows(self) -> float:
        """Return the rows that have come and were not read."""
        read_s = self._read_s()
        if read_s is None:
            return 0.0
        return max(0, (self._now_ms() - self._created_ms) // 1000 - read_s) * float(self._rate)

    def _read_s(self) -> int | None:
        """Return the seconds that were read; None: nobody knows."""
        last = self._execution.lastProgress()
        if last is not None:
            return int(last.sources()[self._place].endOffset())
        planned = self._execution.offsetLog().getLatest()  # before the first trigger of this run
        if planned.isEmpty():
            return 0
        offset = planned.get()._2().offsets().apply(self._place)
        return int(offset.get().json()) if offset.isDefined() else None

    def _now_ms(self) -> int:
        return int(1000 * self._wall.now())

    def _field(self, name: str) -> JavaObject:
        field = self._source.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field


class ReadLimits:
    """The limits of one execution's sources. What fails is not tried again.

    Parameters
    ----------
    possible
        Whether this Spark has what it takes.
    in_pieces
        Whether the user says that rows come in the order of their event times, but for the
        watermark's delay. Else a query with a watermark reads what waits as its user has it: one
        large batch counts rows that would be late after a smaller one.
    """

    def __init__(
        self,
        handles: Handles,
        execution: JavaObject,
        possible: bool = True,
        in_pieces: bool = False,
    ) -> None:
        self._handles = handles
        self._execution = execution
        self._own: JavaObject = None  # Spark's map of sources and their users' limits
        self._sources: list[AdmittedSource] | None = None  # None: not looked for yet
        self._rates: list[RateSource] = []
        self._listed = False  # sources may keep a list of what there was
        self._blind = not possible
        self._in_pieces = in_pieces
        self.rows: int | None = None  # that the next batch may read at most; None: any

    def are(self, rows: int | None) -> bool:
        """Tell whether there is nothing to do for a batch of so many rows."""
        if self._blind or (self._sources == [] and not self._rates):
            return True
        return rows is None and self.are_lifted

    @property
    def are_lifted(self) -> bool:
        """Whether the next batch reads all there is, as far as its user lets it."""
        return self.rows is None and not self._listed

    def set_rows(self, rows: int | None) -> None:
        """Limit the next batch; None: no longer. Only while the query stands at its gate.

        Where it is not known how much waits, a limit holds until a batch has read all there is.
        """
        try:
            if self._sources is None:
                self._find()
            if self.are(rows):
                return
            if rows is None and self.rows and any(s.more_waits for s in self._sources or ()):
                rows = self.rows
            if rows is None:
                self.lift()
                for source in self._sources or ():
                    source.forget_list()
                self._listed = False
            else:
                self._limit(rows)
        except Exception as error:
            self._give_up(error)

    def lift(self) -> None:
        """Leave sources as their users want them; also while a batch runs."""
        if self.rows is None:
            return
        self._execution.__getattr__("uniqueSources_$eq")(self._own)
        for rate in self._rates:
            rate.lift()
        self.rows = None

    def left_rows(self, ran: bool) -> float | None:
        """Return about how many rows the last batch has left, where offsets do not tell.

        None: it was not limited, or nobody knows.

        Parameters
        ----------
        ran
            Whether a batch has run since the last look.
        """
        if not self.rows or self._blind:
            return None
        try:
            files = [source for source in self._sources or () if not source.counts_rows]
            if files:
                self._measure(files, ran)
            told = [source.left_rows() for source in files]
            told += [rate.left_rows() for rate in self._rates]
            left = [rows for rows in told if rows is not None]
            return sum(left) if left and len(left) == len(told) else None
        except Exception as error:
            self._give_up(error)
            return None

    def _find(self) -> None:
        self._own = self._execution.uniqueSources()
        self._sources = []
        in_order = self._in_pieces or not has_watermark(self._execution.analyzedPlan())
        entries = self._own.iterator()
        while entries.hasNext():
            entry = entries.next()
            source = entry._1()
            if str(source.getClass().getSimpleName()) == _RATE:
                self._rates.append(RateSource(self._handles, self._execution, source))
            elif (
                found := admitted_source(self._handles, source, entry._2(), in_order)
            ) is not None:
                self._sources.append(found)

    def _limit(self, rows: int) -> None:
        limits = self._own
        for source in self._sources or ():
            limit = source.limit_to(rows)
            if limit is not None:
                limits = limits.updated(source.source, limit)
        if limits is self._own and not self._rates:
            self.lift()
            return
        self.rows = rows  # first: who looks must not think that everything is read
        self._listed = True
        self._execution.__getattr__("uniqueSources_$eq")(limits)
        for rate in self._rates:
            rate.limit_to(rows)

    def _measure(self, sources: list[AdmittedSource], ran: bool) -> None:
        """Read from the last batch's plan what it took."""
        last = self._execution.lastExecution() if ran else None
        scans = [] if last is None else _file_scans(last.executedPlan())
        for source in sources:
            read = [_extent(scan) for scan in scans if reads_stream(scan, source.source)]
            rows, files, size = (
                (sum(each) for each in zip(*read, strict=True)) if read else (0,) * 3
            )
            source.took(Extent(rows, files, size) if files else None)

    def _give_up(self, error: Exception) -> None:
        self._blind = True
        reason = first_line(str(error))
        log.warning("rows of a query's sources are not limited: %s", reason)
        with contextlib.suppress(Exception):  # its watermark is then left to Spark
            self.lift()


def _extent(scan: JavaObject) -> Extent:
    metrics = scan.metrics()
    names = ("numOutputRows", "numFiles", "filesSize")
    return Extent(*(int(metrics.apply(name).value()) for name in names))


def _file_scans(plan: JavaObject) -> list[JavaObject]:
    """Return the nodes of a physical plan that read files."""
    kind = str(plan.getClass().getSimpleName())
    if kind == "AdaptiveSparkPlanExec":
        return _file_scans(plan.executedPlan())
    if kind.endswith("QueryStageExec"):
        return _file_scans(plan.plan())
    if kind == "FileSourceScanExec":
        return [plan]
    leaves = plan.collectLeaves()
    found = [leaves.apply(place) for place in range(leaves.size())]
    return [scan for leaf in found if not leaf.equals(plan) for scan in _file_scans(leaf)]
