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
from slackwater.quality.source_rate import SourceRate
from slackwater.statistics.online import BatchCost, Smoothed

REMEMBER_S = 5.0  # over which the delivered accuracy is counted
LEAST_ROWS = 100  # of a micro-batch: fewer would cost more than they bring
FORGETTING = 1.01  # how much longer the shortest batch counts after each
FIRST_FIXED = 0.5  # of a batch's time, while nothing tells its fixed part


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
        self._rate = SourceRate()
        self._cost = BatchCost(forget=0.97)
        self._per_row = Smoothed(0.2)
        self._duration = Smoothed(0.2)
        self._rows = Smoothed(0.2)
        self._least_s = float("inf")  # of all batches; what was long ago counts less and less
        self._backlog = 0.0
        self._seen = 0  # rows, where sources do not tell how many have arrived
        self._counted: deque[tuple[float, Counted]] = deque()

    def take(self, progress: dict[str, Any], counted: Counted | None) -> None:
        """One progress event, and what its shedders let through."""
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
            self._learn(rows, duration_s)

    def hear(self, arrivals: Iterable[Arrived]) -> None:
        """What has arrived by now, as the sources tell between micro-batches; old ones again."""
        for arrived in arrivals:
            if arrived.at_s is not None:
                self._rate.update(arrived.at_s, arrived.rows)

    def _learn(self, rows: int, duration_s: float) -> None:
        self._cost.update(rows, duration_s)
        duration, mean_rows = self._duration.update(duration_s), self._rows.update(rows)
        per_row = self._cost.per_row_s
        if not per_row:  # sizes that hardly vary tell nothing of the fixed part
            fixed_s = FIRST_FIXED * duration
            known = self._per_row.value
            per_row = known if known is not None else max(duration - fixed_s, 0.0) / mean_rows
        # A batch that is kept to a length by its rows shows no slope: all would seem to be fixed.
        # But no fixed part is longer than a whole batch was.
        self._least_s = min(duration_s, FORGETTING * self._least_s)
        self._per_row.update(max(per_row, (duration - self._least_s) / mean_rows))

    @property
    def rate(self) -> float | None:
        """Rows per second that arrive, as far as is known."""
        return self._rate.value

    @property
    def backlog(self) -> float:
        """Rows that had arrived and were not read when the last micro-batch ended."""
        return self._backlog

    def rows_in(self, seconds: float) -> int | None:
        """Rows that a micro-batch of this length has; None while that is not known."""
        per_row, duration, rows = self._per_row.value, self._duration.value, self._rows.value
        if not per_row or duration is None or rows is None:
            return None
        fixed_s = max(duration - per_row * rows, 0.0)
        return max(LEAST_ROWS, int((seconds - fixed_s) / per_row))

    @property
    def needs(self) -> Needs | None:
        """None while too little is known."""
        rate, per_row, duration = self._rate.value, self._per_row.value, self._duration.value
        if rate is None or per_row is None or duration is None or self._rows.value is None:
            return None
        fixed_s = max(duration - per_row * self._rows.value, 0.0)
        usual = 1.2 * max(rate, 0.0) * max(self.batch_every_s, duration)
        return Needs(
            fixed=fixed_s / self.batch_every_s,
            rows=per_row * max(rate, 0.0),
            rate=max(rate, 0.0),
            backlog=max(0.0, self._backlog - usual),
        )
