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


def freed_rows(query: QueryState, emits: bool) -> float:
    """Rows fewer in memory after one batch, p = sz × (1 − S); negative where there will be more.

    A batch that emits lets go of the state of its windows. One that reads from a source adds what
    the query keeps of it; one that takes events from a queue in memory frees the rest.
    """
    metrics = query.metrics
    kept = min(1.0, (metrics.state_rows or 0) / metrics.rows) if metrics.rows else 1.0
    if metrics.buffered_rows is not None:
        return metrics.buffered_rows * (1 - kept)
    if emits:
        return float(metrics.state_rows or 0)
    return -(metrics.backlog_rows or 0.0) * kept


def row_bytes(metrics: QueryMetrics) -> float:
    """What one more input row takes in memory, at most."""
    if not metrics.rows or metrics.state_bytes is None or metrics.state_rows is None:
        return ROW_BYTES
    return max(ROW_BYTES, metrics.state_bytes / max(1, metrics.state_rows))


def rows_that_fit(
    metrics: QueryMetrics, memory: Memory | None, bound: float, slots: int, period_s: float
) -> int:
    """How many rows a batch may read so that all slots together stay within the bound.

    Never fewer than arrive between two sweeps, and half as many again: limits shall cut a backlog
    to pieces, not make one.
    """
    arriving = 1.5 * (metrics.arrival_rate or 0.0) * period_s
    if memory is None:
        return max(FIRST_ROWS, int(arriving))
    room = max(0.0, bound * memory.limit_bytes - memory.used_bytes) / slots
    return max(1000, int(arriving), int(room / row_bytes(metrics)))
