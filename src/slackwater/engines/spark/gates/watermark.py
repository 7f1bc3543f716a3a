"""Raises the watermark of a held query ahead of Spark, to what has arrived already.

Spark moves a watermark at the end of the batch that reads the event which moves it, so a window in
append mode takes two batches: one that reads past its end and one that emits it. While a query
stands at its gate its next watermark can be set. Let F be the newest event time that has arrived:
the batch that begins now will read that row, and Spark itself would set the watermark to F less the
delay after it. Set before, the same batch reads and emits.

Nothing within its delay is dropped: late rows are filtered by the watermark of the batch before,
state is let go by this one's. The value is written into the offset log with the batch, so that a
batch that is repeated after a crash runs with the same.

An input that has told nothing for a while may be left out of account, if the user says so: its part
of the watermark then follows the clock.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from py4j.java_gateway import JavaObject
from pyspark.sql import DataFrame

from slackwater.engines.spark.gates.execution import NotRaisable
from slackwater.engines.spark.gates.method_handles import Handles
from slackwater.engines.spark.plans.event_time import trace_watermarks
from slackwater.engines.spark.plans.tree import read_plan
from slackwater.engines.spark.sources.frontier import (
    Frontier,
    InputToldByUser,
    NoFrontier,
    OffsetsOf,
    ToldFrontier,
    each_offset,
    payload_frontier,
    refuse_limited,
    source_frontier,
)
from slackwater.engines.spark.sources.remote_frontier import FrontierLost, RemoteFrontier
from slackwater.engines.spark.sources.spark_kafka import PayloadTimes

_RATE = "org.apache.spark.sql.execution.streaming.sources.RateStreamMicroBatchStream"

# Their code sees the watermark, and may refuse a timer that lies before it.
_OWN_STATE = {
    "FlatMapGroupsInPandasWithState",
    "FlatMapGroupsWithState",
    "TransformWithState",
    "TransformWithStateInPandas",
    "TransformWithStateInPySpark",
}

Marks = Mapping[str, int | None]  # by operator, ms; None: it has seen no event


@dataclass(frozen=True, slots=True)
class MarkedInput:
    """One watermark of a query."""

    operator: str  # as Spark numbers it
    delay_ms: int
    frontier: Frontier | None = None  # None: how far its source has come is not known


class _Silence:
    """Since when an input has told nothing new."""

    def __init__(self) -> None:
        self._told: int | None = None  # the newest time that it has told, whatever the unit
        self._since_ms: int | None = None  # from when on it has told no newer
        self._until_ms = 0  # up to when somebody has looked

    def look(self, told: int | None, now_ms: int) -> None:
        """Take what the input has told by ``now_ms``."""
        if self._since_ms is None or told != self._told:
            self._told, self._since_ms = told, now_ms
        self._until_ms = now_ms

    def lasts_ms(self) -> int:
        """Return how long it had told nothing when somebody looked last."""
        return 0 if self._since_ms is None else self._until_ms - self._since_ms


class WatermarkRaise:
    """Works out how far the watermark of one query can be raised.

    Parameters
    ----------
    inputs
        Its watermarks.
    idle_after_ms
        An input that told nothing for so long follows the clock; None: never.

    Examples
    --------
    >>> class Told:
    ...     def newest_us(self): return 9_000_000
    >>> inputs = [MarkedInput("a", 1000, Told()), MarkedInput("b", 2000)]
    >>> WatermarkRaise(inputs).reach_ms({"a": 500, "b": 700}, now_ms=10_000)
    700
    >>> WatermarkRaise(inputs).reach_ms({"a": 500, "b": 700}, now_ms=10_000, largest=True)
    8000

    An input that is silent for long enough no longer holds the others up.

    >>> patient = WatermarkRaise(inputs, idle_after_ms=5000)
    >>> for began_ms in (10_000, 12_000, 15_000):
    ...     patient.look({"a": 500, "b": 700}, began_ms)
    >>> patient.reach_ms({"a": 500, "b": 700}, now_ms=15_000)
    8000
    """

    def __init__(self, inputs: Sequence[MarkedInput], idle_after_ms: int | None = None) -> None:
        self._inputs = list(inputs)
        self._idle_after_ms = idle_after_ms
        self._silences = [_Silence() for _ in inputs]
        self.is_told = True  # whether every input that is asked told something, the last time
        self.why_lost: str | None = None  # why an input will not tell any more

    @property
    def several(self) -> bool:
        """Whether there are several inputs with watermarks of their own."""
        return len(self._inputs) > 1

    @property
    def takes_time(self) -> bool:
        """Whether it asks a server, or calls a function of the user's."""
        slow = (InputToldByUser, RemoteFrontier)
        return any(isinstance(one.frontier, slow) for one in self._inputs)

    def close(self) -> None:
        """Ask no more."""
        for one in self._inputs:
            _close(one.frontier)

    def look(self, marks: Marks, began_ms: int) -> None:
        """Take Spark's marks after a trigger that began then and read all that there was."""
        for one, silence in zip(self._inputs, self._silences, strict=True):
            if one.frontier is None:
                silence.look(marks.get(one.operator), began_ms)

    def reach_ms(
        self, marks: Marks, now_ms: int, *, limited: bool = False, largest: bool = False
    ) -> int | None:
        """Return the watermark that the next batch may run with; None: it is not known.

        Parameters
        ----------
        limited
            The batch may not read all that has arrived: only Spark's own marks count.
        largest
            Spark takes the largest of several, not the least.
        """
        self.is_told = True
        told = [
            self._told_ms(one, silence, marks, now_ms, limited)
            for one, silence in zip(self._inputs, self._silences, strict=True)
        ]
        silent = [not limited and self._is_silent(silence) for silence in self._silences]
        if largest and not all(silent):  # it holds nobody up, and others may be far behind
            silent = [False] * len(silent)
        found = [
            self._with_clock_ms(one, mark, now_ms) if idle else mark
            for one, mark, idle in zip(self._inputs, told, silent, strict=True)
        ]
        known = [mark for mark in found if mark is not None]
        if largest:
            return max(known, default=None)
        return min(known) if len(known) == len(found) else None

    def _told_ms(
        self, one: MarkedInput, silence: _Silence, marks: Marks, now_ms: int, limited: bool
    ) -> int | None:
        """Return one input's part: Spark's own, or what its source tells."""
        mark = marks.get(one.operator)
        if limited or one.frontier is None:
            return mark
        try:
            newest_us = one.frontier.newest_us()
        except FrontierLost as error:  # from now on Spark moves its part
            _close(one.frontier)
            self._inputs[self._inputs.index(one)] = replace(one, frontier=None)
            newest_us, self.why_lost = None, str(error)
        silence.look(mark if newest_us is None else newest_us, now_ms)
        if newest_us is None:
            self.is_told = False
            return mark
        told_ms = newest_us // 1000 - one.delay_ms
        return told_ms if mark is None else max(mark, told_ms)

    def _is_silent(self, silence: _Silence) -> bool:
        return self._idle_after_ms is not None and silence.lasts_ms() >= self._idle_after_ms

    def _with_clock_ms(self, one: MarkedInput, mark: int | None, now_ms: int) -> int:
        """Return the part of a silent input: the clock's, unless it was further already."""
        clock_ms = now_ms - (self._idle_after_ms or 0) - one.delay_ms
        return clock_ms if mark is None else max(mark, clock_ms)


def _close(frontier: Frontier | None) -> None:
    if isinstance(frontier, RemoteFrontier):
        frontier.close()


def watermark_raise(
    execution: JavaObject,
    idle_after_ms: int | None = None,
    told: ToldFrontier | None = None,
    query: str = "",
    ahead: bool = True,
    handles: Handles | None = None,
) -> tuple[WatermarkRaise, str | None]:
    """Return how the watermark of an execution can be raised, and why a window takes two batches.

    Parameters
    ----------
    told
        The user's function that tells how far the inputs of ``query`` have come; without it that
        is found for sources that are known.
    ahead
        Whether it may be raised to what has arrived, or only for silent inputs.
    handles
        To ask Spark's own sources in one call.

    Raises
    ------
    NotRaisable
        With the reason, where Spark alone must move the watermark.
    """
    offsets_of = each_offset if handles is None else partial(rate_offsets, handles)
    plan = execution.analyzedPlan()
    return _raise_of(plan, execution, idle_after_ms, told, query, ahead, offsets_of)


def rate_offsets(handles: Handles, sources: Sequence[JavaObject]) -> Callable[[], list[int]]:
    """Return what asks rate sources, all in one call, for the seconds that have come."""
    offset = "org.apache.spark.sql.connector.read.streaming.Offset"
    json = handles.virtual(offset, "json", handles.type("java.lang.String"))
    latest = handles.virtual(_RATE, "latestOffset", handles.type(offset))
    line = handles.text(*(handles.collect(json, latest.bindTo(source)) for source in sources))
    return lambda: [int(each) for each in str(handles.call(line))[1:-1].split(", ")]


def why_two_batches(frame: DataFrame) -> str | None:
    """Return why a window of a query that is not started would take two batches; None: one."""
    try:
        return _raise_of(frame._jdf.queryExecution().analyzed())[1]
    except NotRaisable as error:
        return str(error)


def _raise_of(
    plan: JavaObject,
    execution: JavaObject = None,
    idle_after_ms: int | None = None,
    told: ToldFrontier | None = None,
    query: str = "",
    ahead: bool = True,
    offsets_of: OffsetsOf = each_offset,
) -> tuple[WatermarkRaise, str | None]:
    if any(node.name in _OWN_STATE for node in read_plan(plan).walk()):
        raise NotRaisable("the query keeps state and timers of its own")
    traced = trace_watermarks(plan)
    if not traced:
        raise NotRaisable("the query has no watermark")
    inputs, why_two = [], None
    for place, one in enumerate(traced):
        frontier: Frontier | None = None
        try:
            if not ahead:
                raise NoFrontier("one_batch is off")
            if one.why_not is not None:
                raise NoFrontier(one.why_not)
            if told is None:
                frontier = source_frontier(one, execution, offsets_of)
            elif isinstance(told, PayloadTimes):
                frontier = payload_frontier(told, one, execution)
            else:
                refuse_limited(one.source)
                frontier = InputToldByUser(told, query, place, alone=len(traced) == 1)
        except NoFrontier as error:
            why_two = why_two or str(error)
        inputs.append(MarkedInput(one.operator, one.delay_ms, frontier))
    return WatermarkRaise(inputs, idle_after_ms), why_two
