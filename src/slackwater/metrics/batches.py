"""What micro-batches show of a query, whichever engine ran them."""

from dataclasses import dataclass, replace
from typing import NamedTuple

from slackwater.core.model import QueryMetrics
from slackwater.statistics.arrival_rate import CounterRate
from slackwater.statistics.batch_cost import BatchCost
from slackwater.statistics.online import Moments, Smoothed

COLD = 2  # batches of a query that cost up to ten times as much as all others


@dataclass(frozen=True, slots=True)
class Batch:
    """One micro-batch that ran; ``None`` is "not known", never zero."""

    start_s: float  # when it began to work
    duration_s: float
    rows: int  # read
    rows_written: int | None = None
    max_event_s: float | None = None  # largest event time read; None also in a batch without data
    watermark_s: float | None = None  # that it ran with
    backlog_rows: float | None = None  # arrived and left over
    arrived_rows: float | None = None  # in all, as the sources say
    state_rows: int | None = None
    state_bytes: int | None = None
    rows_dropped_by_watermark: int | None = None


class Coming(NamedTuple):
    """What the engine says of the next batch; not every one does."""

    watermark_s: float | None = None
    of_inputs_s: tuple[float, ...] = ()  # that it is made of
    backlog_rows: float | None = None  # that wait for it where offsets do not tell, about


class BatchObserver:
    """Watches one query, batch by batch.

    >>> observer = BatchObserver()
    >>> observer.update(Batch(10.0, 0.5, rows=100, max_event_s=9.5)).frontier_lag_s
    0.5
    """

    def __init__(self) -> None:
        self._batches = 0
        self._rows_read = 0
        self._seen = 0.0  # rows that were read or are known to wait
        self._rows_written: int | None = None
        self._rows_dropped: int | None = None
        self._empty_batches = 0
        self._cost = BatchCost(forget=0.85, cold=COLD)  # a JVM goes on warming up after them
        self._empty = Smoothed()
        self._arrivals = CounterRate(weight=0.2, restarts=False)
        self._frontier_lag = Moments()
        self._max_event_s: float | None = None
        self._coming = Coming()
        self.metrics = QueryMetrics()

    def update(self, batch: Batch, coming: Coming | None = None) -> QueryMetrics:
        """Take a batch, and where the engine tells it the watermark that comes after it."""
        coming = self._coming if coming is None else coming
        self._coming = coming
        self._batches += 1
        self._rows_read += batch.rows
        self._learn_cost(batch)
        if batch.rows_written is not None:
            self._rows_written = (self._rows_written or 0) + batch.rows_written
        if batch.rows_dropped_by_watermark is not None:
            self._rows_dropped = (self._rows_dropped or 0) + batch.rows_dropped_by_watermark
        if batch.max_event_s is not None:
            self._frontier_lag.update(batch.start_s - batch.max_event_s)
            self._max_event_s = self._newest_s(batch.max_event_s, batch.start_s)
        self._watch_arrivals(batch, coming.backlog_rows or 0.0)
        self.metrics = QueryMetrics(
            batch_start_s=batch.start_s,
            batches=self._batches,
            rows=self._rows_read,
            backlog_rows=_sum_known(batch.backlog_rows, coming.backlog_rows),
            arrival_rate=self._arrivals.value,
            service_rate=batch.rows / batch.duration_s if batch.duration_s > 0 else None,
            batch_fixed_s=self._cost.fixed_s,
            batch_per_row_s=self._cost.per_row_s,
            batch_empty_s=self._empty.value,
            batch_s=batch.duration_s,
            selectivity=self._selectivity(),
            frontier_lag_s=self._frontier_lag.mean,
            frontier_lag_std_s=self._frontier_lag.std,
            max_event_s=self._max_event_s,
            watermark_s=batch.watermark_s,
            next_watermark_s=coming.watermark_s,
            input_watermarks_s=coming.of_inputs_s,
            state_rows=batch.state_rows,
            state_bytes=batch.state_bytes,
            rows_dropped_by_watermark=self._rows_dropped,
        )
        return self.metrics

    def _newest_s(self, read_s: float, start_s: float) -> float:
        """Return the largest event time so far; one from the future counts for its batch alone.

        Else a single row with a wrong date would make all that follows look fresh.
        """
        before_s = self._max_event_s
        return read_s if before_s is None or before_s > start_s else max(read_s, before_s)

    def _learn_cost(self, batch: Batch) -> None:
        if batch.rows:  # the first row already costs: a source is read and its rows are moved
            self._cost.update(batch.rows, batch.duration_s)
        else:
            self._empty_batches += 1
            if self._empty_batches <= 1 + COLD:
                self._empty = Smoothed()
            self._empty.update(batch.duration_s)

    def expect(self, coming: Coming) -> QueryMetrics:
        """Take a watermark that comes though no batch has run."""
        if coming != self._coming:
            self._coming = coming
            left = coming.backlog_rows
            self.metrics = replace(
                self.metrics,
                backlog_rows=self.metrics.backlog_rows if left is None else left,
                next_watermark_s=coming.watermark_s,
                input_watermarks_s=coming.of_inputs_s,
            )
        return self.metrics

    def _selectivity(self) -> float | None:
        if self._rows_written is None or self._rows_read == 0:
            return None
        return self._rows_written / self._rows_read

    def _watch_arrivals(self, batch: Batch, waiting: float) -> None:
        """Take what the sources say has arrived; where they do not say, what was seen of it."""
        if batch.arrived_rows is not None:
            self._arrivals.update(batch.start_s, batch.arrived_rows)
            return
        # What is read of a backlog has not just come. (Spark's inputRowsPerSecond is since the last
        # poll, not the last batch.)
        self._seen = max(self._seen, self._rows_read + waiting)
        self._arrivals.update(batch.start_s, self._seen)


def _sum_known(*numbers: float | None) -> float | None:
    known = [number for number in numbers if number is not None]
    return sum(known) if known else None
