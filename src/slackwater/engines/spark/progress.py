"""Spark's progress events become metrics."""

import json
import logging
from collections.abc import Iterable
from typing import Any, NamedTuple

import msgspec

from slackwater.core.model import QueryMetrics
from slackwater.ipc.progress import QueryProgress
from slackwater.ipc.progress import instant_s as instant_s
from slackwater.metrics import Batch, BatchObserver, Coming

log = logging.getLogger("slackwater.progress")

Progress = QueryProgress | dict[str, Any]  # as it travels, or as Spark reports it

MOST_ROWS = 2**63  # an offset beyond that is no count


class QueryObserver:
    """Watches one query. Feed it the progress of every trigger."""

    def __init__(self) -> None:
        self._batches = BatchObserver()

    @property
    def metrics(self) -> QueryMetrics:
        return self._batches.metrics

    def update(self, progress: Progress | None, coming: Coming | None = None) -> QueryMetrics:
        """Take one progress event and, where a gate can tell it, the watermark that comes.

        Events that ran no batch change nothing.
        """
        if progress is not None and ran_a_batch(progress):
            return self._batches.update(batch_of(progress), coming)
        return self._batches.expect(coming) if coming is not None else self.metrics


def read_progress(progress: Progress) -> QueryProgress:
    """Return the part of Spark's progress that is used here, as a type."""
    if isinstance(progress, QueryProgress):
        return progress
    return msgspec.convert(progress, QueryProgress)


def known_progress(progress: Progress | None) -> QueryProgress | None:
    """Read progress where there is some; one that cannot be read must not keep a query waiting.

    >>> known_progress({"timestamp": "yesterday"}) is None
    True
    """
    try:
        return None if progress is None else read_progress(progress)
    except msgspec.ValidationError as error:
        log.warning("the progress of a batch is passed over: %s", error)
        return None


def coming_of(
    watermark_ms: int | None, of_inputs_ms: Iterable[int], backlog_rows: float | None = None
) -> Coming:
    """Return the watermark that comes and what waits, as a gate tells it.

    >>> coming_of(1500, [1500, 2000])
    Coming(watermark_s=1.5, of_inputs_s=(1.5, 2.0), backlog_rows=None)
    """
    watermark_s = None if watermark_ms is None else watermark_ms / 1000
    return Coming(watermark_s, tuple([each / 1000 for each in of_inputs_ms]), backlog_rows)


def batch_of(progress: Progress) -> Batch:
    """Return a progress event that ran a batch in the words of all engines."""
    progress = read_progress(progress)
    start_s, duration_s = working_time(progress)
    written = progress.sink.num_output_rows
    operators = progress.state_operators
    arrived = arrived_rows(progress)
    return Batch(
        start_s=start_s,
        duration_s=duration_s,
        rows=progress.num_input_rows,
        rows_written=written if written >= 0 else None,  # Spark says −1 when a sink does not count
        max_event_s=newest_event_s(progress),
        watermark_s=_event_time_s(progress.event_time.watermark),
        backlog_rows=backlog_rows(progress),
        arrived_rows=None if arrived is None else arrived.rows,
        state_rows=sum(each.num_rows_total for each in operators) if operators else None,
        state_bytes=sum(each.memory_used_bytes for each in operators) if operators else None,
        rows_dropped_by_watermark=(
            sum(each.num_rows_dropped_by_watermark for each in operators) if operators else None
        ),
    )


def newest_event_s(progress: Progress) -> float | None:
    """Return the largest event time that a batch read: of its watermark, or as it was observed.

    >>> from slackwater.ipc.progress import Durations, Newest, Observed
    >>> observed = Observed(Newest(2_500_000))
    >>> at = "1970-01-01T00:00:00Z"
    >>> newest_event_s(QueryProgress(at, 1, Durations(), observed_metrics=observed))
    2.5
    """
    progress = read_progress(progress)
    found_s, observed = _event_time_s(progress.event_time.max), progress.observed_metrics
    if found_s is not None or not observed or not observed.slackwater:
        return found_s
    newest_us = _number(observed.slackwater.newest_us)
    return newest_us / 1e6 if newest_us is not None and newest_us > 0 else None


def ran_a_batch(progress: Progress) -> bool:
    """Tell whether a batch ran; Spark also reports triggers that found nothing to do."""
    if isinstance(progress, QueryProgress):
        return progress.ran_a_batch
    return "addBatch" in progress.get("durationMs", {})


def working_time(progress: Progress) -> tuple[float, float]:
    """Return when a batch began to work and how long it did, in seconds.

    Asking sources for their offsets is left out: a source gate waits for its grant there.
    """
    progress = read_progress(progress)
    durations = progress.duration_ms
    asking_s = (durations.latest_offset or 0) / 1000
    trigger_s = (durations.trigger_execution or 0) / 1000
    return instant_s(progress.timestamp) + asking_s, trigger_s - asking_s


def batch_end_s(progress: Progress) -> float:
    """Return when results were complete at the sink: the trigger's end less the commit log."""
    progress = read_progress(progress)
    durations = progress.duration_ms
    busy_ms = (durations.trigger_execution or 0) - (durations.commit_offsets or 0)
    return instant_s(progress.timestamp) + busy_ms / 1000


def backlog_rows(progress: Progress) -> float | None:
    """Return the rows that have arrived and were not read, over the sources that tell; else None.

    >>> from slackwater.ipc.progress import Durations, SourceOffsets
    >>> def read(end, latest):
    ...     sources = (SourceOffsets(end, latest),)
    ...     return QueryProgress("1970-01-01T00:00:00Z", 0, Durations(), sources=sources)
    >>> backlog_rows(read({"n": 40}, {"n": 55}))
    15.0
    >>> backlog_rows(read({"ads": {"0": 7, "1": 9}}, {"ads": {"0": 10, "1": 9}}))  # Kafka's
    3.0
    """
    known = [latest - end for latest, end in _positions(progress) if end is not None]
    return sum(known) if known else None


class Arrived(NamedTuple):
    """Rows that had arrived in all at a time."""

    rows: float
    at_s: float | None  # None: the sources do not tell when they looked


def arrived_rows(progress: Progress) -> Arrived | None:
    """Return the rows that have arrived, over the sources that tell.

    >>> from slackwater.ipc.progress import Durations, SourceOffsets
    >>> sources = (SourceOffsets(None, {"n": 55, "t": 2_000_000}),)
    >>> arrived_rows(QueryProgress("1970-01-01T00:00:00Z", 0, Durations(), sources=sources))
    Arrived(rows=55.0, at_s=2.0)
    """
    known = [latest for latest, _ in _positions(progress)]
    if not known:
        return None
    offsets = [parsed_offset(each.latest_offset) for each in read_progress(progress).sources]
    found = [_number(offset.get("t")) for offset in offsets if isinstance(offset, dict)]
    times = [time for time in found if time is not None]
    told = len(times) == len(known)
    return Arrived(sum(known), sum(times) / len(times) / 1e6 if told else None)


def _positions(progress: Progress) -> list[tuple[float, float | None]]:
    """Return rows arrived and rows read of each source whose offsets count rows."""
    found = []
    for source in read_progress(progress).sources:
        latest = _position(source.latest_offset)
        if latest is not None:
            found.append((latest, _position(source.end_offset)))
    return found


def _position(offset: Any) -> float | None:
    """Read an offset that counts rows: ours (``n``), or by topic and partition (Kafka's)."""
    offset = parsed_offset(offset)
    if not isinstance(offset, dict) or not offset:
        return None
    if "n" in offset:
        return _number(offset["n"])
    if not all(isinstance(value, dict) for value in offset.values()):
        return None
    rows = [row for partitions in offset.values() for row in partitions.values()]
    return _number(sum(rows)) if all(isinstance(row, int) for row in rows) else None


def _number(value: Any) -> float | None:
    """Return a number that a float can hold; anything else is not known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= MOST_ROWS else None


def parsed_offset(offset: Any) -> Any:
    """Return an offset as it is meant: progress has it as a text, or as what it stands for."""
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except (ValueError, RecursionError):
        return None


def _event_time_s(text: str | None) -> float | None:
    if text is None:
        return None
    try:
        value = instant_s(text)
    except ValueError:  # data may claim to be from any year
        return None
    return value if value > 0 else None  # Spark's watermark starts at the epoch: not known yet
