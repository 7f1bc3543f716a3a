"""When memory runs short: how long it counts more than slack, and whom it lets in."""

from collections.abc import Sequence

from slackwater.core.model import Memory, OperatorMetrics, QueryMetrics, QueryState

PATIENCE_S = 3.0  # without a fall in memory, and something else is tried
LONGEST_PAUSE_S = 300.0  # between two attempts
FALL = 0.005  # as a share of what is used
ROW_BYTES = 1000.0  # what a row takes until a query has shown it
FIRST_ROWS = 50_000  # of a first batch: enough to learn from, too few to run out of memory


class Pressure:
    """Memory management is on from ``bound`` until half of the memory used then is free again, or
    until for some seconds nothing more became free. If memory is above the bound even then, input
    comes as fast as anything can be freed; then it is tried again less and less often, because
    what frees most is not what is due.

    >>> pressure = Pressure(0.8)
    >>> pressure.update(10.0, Memory(70, 100))
    False
    >>> pressure.update(11.0, Memory(82, 100))
    True
    >>> pressure.update(12.0, Memory(60, 100))
    True
    >>> pressure.update(13.0, Memory(40, 100))
    False
    """

    def __init__(self, bound: float) -> None:
        self.bound = bound  # b
        self._on = False
        self._target_bytes = 0.0
        self._least_bytes = 0.0  # since it is on
        self._fell_s = 0.0  # when that was reached
        self._pause_s = PATIENCE_S  # after a vain attempt
        self._again_s = 0.0  # no new attempt before

    def update(self, now_s: float, memory: Memory | None) -> bool:
        """Take a look at memory and tell whether it counts now."""
        if memory is None:
            return False
        used = memory.used_bytes
        if self._on and used < (1 - FALL) * self._least_bytes:
            self._least_bytes, self._fell_s = used, now_s
        if self._on and used <= self._target_bytes:
            self._on, self._pause_s = False, PATIENCE_S
        elif self._on and now_s - self._fell_s >= PATIENCE_S:
            self._on = False
            if memory.utilisation >= self.bound:
                self._again_s = now_s + self._pause_s
                self._pause_s = min(LONGEST_PAUSE_S, 2 * self._pause_s)
        if not self._on and memory.utilisation >= self.bound and now_s >= self._again_s:
            self._on, self._target_bytes = True, used / 2
            self._least_bytes, self._fell_s = used, now_s
        return self._on


def operators_now(metrics: QueryMetrics, now_s: float) -> Sequence[OperatorMetrics]:
    """Return the operators, the first with what has come to it since it was told."""
    if not metrics.operators or metrics.batch_start_s is None:
        return metrics.operators
    first, *others = metrics.operators
    came = max(0.0, now_s - metrics.batch_start_s) * (metrics.arrival_rate or 0.0)
    return first._replace(queued=first.queued + came), *others


def best_operators(operators: Sequence[OperatorMetrics], budget_s: float) -> tuple[float, int]:
    """Return how many events fewer can be in queues after so much work (eq. 9).

    And how many operators to run for that, from the source on.

    >>> whole = OperatorMetrics(0.0, 0.01, cost_s=8e-6)
    >>> best_operators((OperatorMetrics(9e5, 1 / 3, cost_s=2e-6), whole), budget_s=0.12)
    (40000.0, 1)
    """
    most, count = 0.0, len(operators)
    reaching = freed = work_s = 0.0  # events that come to an operator if all before it run dry
    for number, operator in enumerate(operators, 1):
        reaching += operator.queued
        work_s += reaching * operator.cost_s
        freed += reaching * (1 - operator.selectivity)
        reaching *= operator.selectivity
        possible = freed * min(1.0, budget_s / work_s) if work_s > 0 else freed
        if possible > most + 1e-9:
            most, count = possible, number
    return round(most, 6), count


def freed_rows(query: QueryState, emits: bool) -> float:
    """Return rows fewer in memory after one batch, p = sz × (1 − S); negative: more.

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
    """Return what one more input row takes in memory, at most."""
    if not metrics.rows or metrics.state_bytes is None or metrics.state_rows is None:
        return ROW_BYTES
    return max(ROW_BYTES, metrics.state_bytes / max(1, metrics.state_rows))


def rows_that_fit(
    metrics: QueryMetrics, memory: Memory | None, bound: float, slots: int, period_s: float
) -> int:
    """Return how many rows a batch may read so that all slots together stay within the bound.

    Never fewer than arrive between two sweeps, and half as many again: limits shall cut a backlog
    to pieces, not make one.
    """
    arriving = 1.5 * (metrics.arrival_rate or 0.0) * period_s
    if memory is None:
        return max(FIRST_ROWS, int(arriving))
    room = max(0.0, bound * memory.limit_bytes - memory.used_bytes) / slots
    return max(1000, int(arriving), int(room / row_bytes(metrics)))
