"""Spark's progress events become metrics."""

import json
from dataclasses import replace
from datetime import datetime
from typing import Any

from slackwater.core.model import QueryMetrics
from slackwater.metrics import BatchCost, Moments, Smoothed

Progress = dict[str, Any]


class QueryObserver:
    """Watches one query. Feed it every ``StreamingQueryProgress`` (its JSON, parsed)."""

    def __init__(self) -> None:
        self._batches = 0
        self._rows_read = 0
        self._rows_written: int | None = None
        self._cost = BatchCost(forget=0.85)  # the first batches of a JVM cost ten times as much
        self._empty = Smoothed()
        self._arrivals = Smoothed()
        self._frontier_lag = Moments()
        self._max_event_s: float | None = None
        self._last_arrived: tuple[float, float] | None = None  # when, rows arrived in all
        self.metrics = QueryMetrics()

    def update(self, progress: Progress) -> QueryMetrics:
        """Take one progress event; those that ran no batch change nothing."""
        if not ran_a_batch(progress):
            return self.metrics
        start_s, duration_s = working_time(progress)
        rows = int(progress["numInputRows"])
        self._batches += 1
        self._rows_read += rows
        if rows:  # the first row already costs: a source is read and its rows are moved
            self._cost.update(rows, duration_s)
        else:
            self._empty.update(duration_s)
        self._count_output(progress)
        self._watch_event_time(progress, start_s)
        self._watch_arrivals(progress, start_s)
        self.metrics = QueryMetrics(
            batch_start_s=start_s,
            batches=self._batches,
            rows=self._rows_read,
            backlog_rows=backlog_rows(progress),
            arrival_rate=self._arrivals.value,
            service_rate=rows / duration_s if duration_s > 0 else None,
            batch_fixed_s=self._cost.fixed_s,
            batch_per_row_s=self._cost.per_row_s,
            batch_empty_s=self._empty.value,
            batch_s=duration_s,
            selectivity=self._selectivity(),
            frontier_lag_s=self._frontier_lag.mean,
            frontier_lag_std_s=self._frontier_lag.std,
            max_event_s=self._max_event_s,
            watermark_s=_event_time_s(progress, "watermark"),
            next_watermark_s=self.metrics.next_watermark_s,
            input_watermarks_s=self.metrics.input_watermarks_s,
            state_rows=_state_total(progress, "numRowsTotal"),
            state_bytes=_state_total(progress, "memoryUsedBytes"),
        )
        return self.metrics

    def coming(self, watermark_ms: int | None, of_inputs_ms: list[int] | None) -> None:
        """Take what the engine says the next batch's watermark will be (not every gate can)."""
        self.metrics = replace(
            self.metrics,
            next_watermark_s=None if watermark_ms is None else watermark_ms / 1000,
            input_watermarks_s=tuple(each / 1000 for each in of_inputs_ms or ()),
        )

    def _count_output(self, progress: Progress) -> None:
        written = progress.get("sink", {}).get("numOutputRows", -1)
        if written >= 0:  # Spark says −1 when a sink does not count
            self._rows_written = (self._rows_written or 0) + written

    def _selectivity(self) -> float | None:
        if self._rows_written is None or self._rows_read == 0:
            return None
        return self._rows_written / self._rows_read

    def _watch_event_time(self, progress: Progress, start_s: float) -> None:
        newest_s = _event_time_s(progress, "max")
        if newest_s is None:  # a batch without data
            return
        self._frontier_lag.update(start_s - newest_s)
        self._max_event_s = max(newest_s, self._max_event_s or newest_s)

    def _watch_arrivals(self, progress: Progress, start_s: float) -> None:
        """From what the sources say has arrived; where they do not say, from what was read."""
        arrived = _arrived_rows(progress)
        if arrived is None:  # Spark's inputRowsPerSecond is since the last poll, not the last batch
            arrived = float(self._rows_read)
        if self._last_arrived is not None and start_s > self._last_arrived[0]:
            then_s, before = self._last_arrived
            self._arrivals.update((arrived - before) / (start_s - then_s))
        self._last_arrived = (start_s, arrived)


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


def _arrived_rows(progress: Progress) -> float | None:
    known = [latest for latest, _ in _positions(progress)]
    return sum(known) if known else None


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
    offset = _parsed(offset)
    if not isinstance(offset, dict) or not offset:
        return None
    if "n" in offset:
        return float(offset["n"])
    if not all(isinstance(value, dict) for value in offset.values()):
        return None
    rows = [row for partitions in offset.values() for row in partitions.values()]
    return float(sum(rows)) if all(isinstance(row, int) for row in rows) else None


def _parsed(offset: Any) -> Any:
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
