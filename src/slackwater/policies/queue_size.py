"""Queue size."""

from collections.abc import Iterable, Mapping, Sequence

from slackwater.core.entities import Operator, Values
from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy, largest_first, unknown_first


class QueueSize(Policy):
    """Admits the query with most rows waiting; those not yet known come first, to become known."""

    name = "queue-size"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        for rows, query in largest_first(waiting, lambda q: rows_waiting(q, snapshot.now_s)):
            reason = "backlog not known yet" if rows is None else f"{rows:.0f} rows waiting"
            yield Admission(query.name, reason)

    def _weigh(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Values:
        """Weigh operators by the rows before them."""
        return unknown_first(operators, metrics["queue-size"])


def rows_waiting(query: QueryState, now_s: float) -> float | None:
    """Return rows that the last batch left, plus those that should have arrived since it began.

    >>> from slackwater.core import QueryMetrics, QuerySpec
    >>> metrics = QueryMetrics(backlog_rows=20.0, arrival_rate=100.0)
    >>> rows_waiting(QueryState(QuerySpec("q"), admitted_s=5.0, metrics=metrics), now_s=7.0)
    220.0
    """
    left, rate = query.metrics.backlog_rows, query.metrics.arrival_rate
    if left is None and rate is None:
        return None
    # A batch takes its offsets as it begins: what arrives while it runs is still waiting.
    read_s = query.since_s if query.admitted_s is None else query.admitted_s
    return (left or 0.0) + (rate or 0.0) * max(0.0, now_s - read_s)
