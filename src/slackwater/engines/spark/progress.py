"""Spark's progress events become metrics."""

import json
from datetime import datetime
from typing import Any, NamedTuple

from slackwater.core.model import QueryMetrics
from slackwater.metrics import Batch, BatchObserver, Coming

Progress = dict[str, Any]


class QueryObserver:
    """Watches one query. Feed it every ``StreamingQueryProgress`` (its JSON, parsed)."""

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


def coming_of(watermark_ms: int | None, of_inputs_ms: list[int] | None) -> Coming:
    """As a gate tells it.

    >>> coming_of(1500, [1500, 2000])
    Coming(watermark_s=1.5, of_inputs_s=(1.5, 2.0))
    """
    watermark_s = None if watermark_ms is None else watermark_ms / 1000
    return Coming(watermark_s, tuple([each / 1000 for each in of_inputs_ms or ()]))


def batch_of(progress: Progress) -> Batch:
    """A progress event that ran a batch, in the words of all engines."""
    start_s, duration_s = working_time(progress)
    written = progress.get("sink", {}).get("numOutputRows", -1)
    return Batch(
        start_s=start_s,
        duration_s=duration_s,
        rows=int(progress["numInputRows"]),
        rows_written=written if written >= 0 else None,  # Spark says −1 when a sink does not count
        max_event_s=_event_time_s(progress, "max"),
        watermark_s=_event_time_s(progress, "watermark"),
        backlog_rows=backlog_rows(progress),
        arrived_rows=_total(progress),
        state_rows=_state_total(progress, "numRowsTotal"),
        state_bytes=_state_total(progress, "memoryUsedBytes"),
    )


def ran_a_batch(progress: Progress) -> bool:
    """Spark also reports triggers that found nothing to do."""
    return "addBatch" in progress.get("durationMs", {})


def instant_s(text: str) -> float:
    """Seconds since the epoch of Spark's ISO timestamps.

    >>> instant_s("1970-01-01T00:00:01.500Z")
    1.5
    """
    return datetime.fromisoformat(text).timestamp()


def working_time(progress: Progress) -> tuple[float, float]:
    """When a batch began to work and how long it did, in seconds.

    Asking sources for their offsets is left out: a source gate waits for its grant there.
    """
    durations = progress["durationMs"]
    asking_s = durations.get("latestOffset", 0) / 1000
    return instant_s(progress["timestamp"]) + asking_s, durations[
        "triggerExecution"
    ] / 1000 - asking_s


def batch_end_s(progress: Progress) -> float:
    """When the batch's results were complete at the sink: the trigger's end less the commit log."""
    durations = progress["durationMs"]
    busy_ms = durations["triggerExecution"] - durations.get("commitOffsets", 0)
    return instant_s(progress["timestamp"]) + float(busy_ms) / 1000


def backlog_rows(progress: Progress) -> float | None:
    """Rows that have arrived and were not read, over the sources that tell; ``None`` if none does.

    >>> offsets = {"endOffset": {"n": 40}, "latestOffset": {"n": 55}}
    >>> backlog_rows({"sources": [offsets]})
    15.0
    >>> kafka = {"endOffset": {"ads": {"0": 7, "1": 9}}, "latestOffset": {"ads": {"0": 10, "1": 9}}}
    >>> backlog_rows({"sources": [kafka]})
    3.0
    """
    known = [latest - end for latest, end in _positions(progress) if end is not None]
    return sum(known) if known else None


class Arrived(NamedTuple):
    """Rows that had arrived in all at a time."""

    rows: float
    at_s: float | None  # None: the sources do not tell when they looked


def arrived_rows(progress: Progress) -> Arrived | None:
    """Over the sources that tell.

    >>> arrived_rows({"sources": [{"latestOffset": {"n": 55, "t": 2_000_000}, "endOffset": None}]})
    Arrived(rows=55.0, at_s=2.0)
    """
    known = [latest for latest, _ in _positions(progress)]
    if not known:
        return None
    offsets = [parsed_offset(source.get("latestOffset")) for source in progress.get("sources", [])]
    times = [offset["t"] for offset in offsets if isinstance(offset, dict) and "t" in offset]
    told = len(times) == len(known)
    return Arrived(sum(known), sum(times) / len(times) / 1e6 if told else None)


def _total(progress: Progress) -> float | None:
    arrived = arrived_rows(progress)
    return None if arrived is None else arrived.rows


def _positions(progress: Progress) -> list[tuple[float, float | None]]:
    """Rows arrived and rows read of each source whose offsets count rows."""
    found = []
    for source in progress.get("sources", []):
        latest = _position(source.get("latestOffset"))
        if latest is not None:
            found.append((latest, _position(source.get("endOffset"))))
    return found


def _position(offset: Any) -> float | None:
    """Of an offset that is a number of rows: ours (``n``), or by topic and partition (Kafka's)."""
    offset = parsed_offset(offset)
    if not isinstance(offset, dict) or not offset:
        return None
    if "n" in offset:
        return float(offset["n"])
    if not all(isinstance(value, dict) for value in offset.values()):
        return None
    rows = [row for partitions in offset.values() for row in partitions.values()]
    return float(sum(rows)) if all(isinstance(row, int) for row in rows) else None


def parsed_offset(offset: Any) -> Any:
    """As progress has it: a text, or what it stands for."""
    if not isinstance(offset, str):
        return offset
    try:
        return json.loads(offset)
    except ValueError:
        return None


def _event_time_s(progress: Progress, key: str) -> float | None:
    text = progress.get("eventTime", {}).get(key)
    if text is None:
        return None
    value = instant_s(text)
    return value if value > 0 else None  # Spark's watermark starts at the epoch: not known yet


def _state_total(progress: Progress, key: str) -> int | None:
    operators = progress.get("stateOperators", [])
    return sum(int(operator[key]) for operator in operators) if operators else None
