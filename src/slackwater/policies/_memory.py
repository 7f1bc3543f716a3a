"""When memory runs short: how long it counts more than slack, and whom it lets in."""

from collections.abc import Callable

from slackwater.core.model import Memory, QueryMetrics, QueryState

ROW_BYTES = 1000.0  # what a row takes until a query has shown it
FIRST_ROWS = 50_000  # of a first batch: enough to learn from, too few to run out of memory


class Pressure:
    """Memory management is on from ``bound`` until half of the memory used then is free again, or
    until the least slack of that moment has passed; then it may go on anew.

    >>> pressure = Pressure(0.8)
    >>> five_s = lambda: 5.0
    >>> pressure.update(10.0, Memory(70, 100), five_s)
    False
    >>> pressure.update(11.0, Memory(82, 100), five_s)
    True
    >>> pressure.update(12.0, Memory(60, 100), five_s)
    True
    >>> pressure.update(13.0, Memory(40, 100), five_s)
    False
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound  # b
        self._target_bytes = 0.0
        self._until_s: float | None = None  # None: off

    def update(
        self, now_s: float, memory: Memory | None, least_slack_s: Callable[[], float]
    ) -> bool:
        """Whether memory counts now."""
        if memory is None:
            return False
        on = self._until_s is not None
        if on and (memory.used_bytes <= self._target_bytes or now_s >= (self._until_s or 0.0)):
            self._until_s = None
        if self._until_s is None and memory.utilisation >= self.bound:
            self._target_bytes = memory.used_bytes / 2
            self._until_s = now_s + max(0.0, least_slack_s())
        return self._until_s is not None or memory.utilisation >= self.bound


def freed_rows(query: QueryState, emits: bool, cycle_s: float) -> float:
    """Rows fewer in memory after one batch: p = sz × (1 − S), as many as a cycle can process.

    A batch that emits lets go of the state of its windows. One that only reads turns input into
    state: it frees what the query drops or folds together on the way.
    """
    metrics = query.metrics
    if emits:
        return float(metrics.state_rows or 0)
    waiting = metrics.backlog_rows or 0.0
    per_row_s = metrics.batch_per_row_s or 0.0
    if per_row_s > 0:
        waiting = min(waiting, cycle_s / per_row_s)
    kept = min(1.0, (metrics.state_rows or 0) / metrics.rows) if metrics.rows else 1.0
    selectivity = metrics.selectivity if metrics.selectivity is not None else kept
    return waiting * (1.0 - min(1.0, selectivity))


def row_bytes(metrics: QueryMetrics) -> float:
    """What one more input row takes in memory, at most."""
    if not metrics.rows or metrics.state_bytes is None or metrics.state_rows is None:
        return ROW_BYTES
    return max(ROW_BYTES, metrics.state_bytes / max(1, metrics.state_rows))


def rows_that_fit(metrics: QueryMetrics, memory: Memory | None, bound: float, slots: int) -> int:
    """How many rows a batch may read so that all slots together stay within the bound."""
    if memory is None:
        return FIRST_ROWS
    room = max(0.0, bound * memory.limit_bytes - memory.used_bytes) / slots
    return max(1000, int(room / row_bytes(metrics)))
