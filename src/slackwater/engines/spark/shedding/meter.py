"""What a query costs and gets through, from its micro-batches."""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from slackwater.engines.spark.progress import (
    Arrived,
    arrived_rows,
    backlog_rows,
    instant_s,
    ran_a_batch,
    working_time,
)
from slackwater.engines.spark.shedding.shedders import Counted
from slackwater.metrics.batches import COLD
from slackwater.statistics.arrival_rate import ArrivalRate
from slackwater.statistics.batch_cost import SteeredBatchCost

REMEMBER_S = 5.0  # over which the delivered accuracy is counted
LEAST_ROWS = 100  # of a micro-batch: fewer would cost more than they bring


@dataclass(frozen=True)
class Needs:
    """In seconds of micro-batches per second of the clock."""

    fixed: float  # at the slowest pace that is still prompt
    rows: float  # at full accuracy
    rate: float  # rows per second that arrive
    backlog: float  # rows that wait beyond those that always do


class QualityMeter:
    """One query.

    Parameters
    ----------
    batch_every_s
        How long may lie between two micro-batches: fewer batches are the first thing that gives
        way, because each costs something however few rows it has.
    """

    def __init__(self, batch_every_s: float = 1.0) -> None:
        self.batch_every_s = batch_every_s
        self.busy_s = 0.0  # of all micro-batches so far
        self.batches = 0  # with rows
        self.delivered: float | None = None  # the accuracy of the last seconds, as it was counted
        self._rate = ArrivalRate()
        self._cost = SteeredBatchCost()
        self._backlog = 0.0
        self._seen = 0  # rows, where sources do not tell how many have arrived
        self._counted: deque[tuple[float, Counted]] = deque()

    def take(self, progress: dict[str, Any], counted: Counted | None) -> None:
        """Learn from one progress event, and what its shedders let through."""
        if not ran_a_batch(progress):
            return
        start_s, duration_s = working_time(progress)
        self.busy_s += duration_s
        told = arrived_rows(progress)
        if told is not None:
            self._rate.update(told.at_s or instant_s(progress["timestamp"]), told.rows)
        elif counted is not None:  # its sources do not count: what it reads is what has come
            self._seen += counted.seen
            self._rate.update(start_s, self._seen)
        self._backlog = backlog_rows(progress) or 0.0
        if counted is not None:
            self._counted.append((start_s, counted))
            while self._counted[0][0] < start_s - REMEMBER_S:
                self._counted.popleft()
            seen = sum(each.seen for _, each in self._counted)
            self.delivered = sum(each.kept for _, each in self._counted) / seen
        rows = counted.kept if counted is not None else int(progress["numInputRows"])
        self.batches += rows > 0
        if rows and self.batches > COLD:
            self._cost.update(rows, duration_s)

    def add_arrivals(self, arrivals: Iterable[Arrived]) -> None:
        """Learn what has arrived by now, as sources tell it lately; old counts may come again."""
        for arrived in arrivals:
            if arrived.at_s is not None:
                self._rate.update(arrived.at_s, arrived.rows)

    @property
    def rate(self) -> float | None:
        """Rows per second that arrive, as far as is known."""
        return self._rate.value

    @property
    def backlog(self) -> float:
        """Rows that had arrived and were not read when the last micro-batch ended."""
        return self._backlog

    def rows_in(self, seconds: float) -> int | None:
        """Return the rows that a micro-batch of this length has; None while that is not known."""
        rows = self._cost.rows_in(seconds)
        return None if rows is None else max(LEAST_ROWS, rows)

    @property
    def needs(self) -> Needs | None:
        """None while too little is known."""
        rate, duration_s = self._rate.value, self._cost.duration_s
        fixed_s, per_row_s = self._cost.fixed_s, self._cost.per_row_s
        if rate is None or duration_s is None or fixed_s is None or per_row_s is None:
            return None
        usual = 1.2 * max(rate, 0.0) * max(self.batch_every_s, duration_s)
        return Needs(
            fixed=fixed_s / self.batch_every_s,
            rows=per_row_s * max(rate, 0.0),
            rate=max(rate, 0.0),
            backlog=max(0.0, self._backlog - usual),
        )
