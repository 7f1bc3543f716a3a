"""Highest rate."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from slackwater.core.entities import Operator, Scale, Values
from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy, largest_first
from slackwater.policies.queue_size import rows_waiting


class HighestRate(Policy):
    """Admits the query that gives most output for the time it takes.

    Its rate is selectivity ÷ cost: output rows per input row ÷ seconds per input row. A batch has a
    fixed cost, so the cost of a row depends on how many it is shared by. Queries not yet known come
    first, to become known.

    References
    ----------
    Sharaf et al., *Algorithms and Metrics for Processing Multiple Heterogeneous Continuous
    Queries*, ACM TODS 33(1), 2008.
    """

    name = "highest-rate"
    metrics: ClassVar = ("highest-rate",)
    scale: ClassVar[Scale] = "log"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        for rate, query in largest_first(waiting, lambda q: output_rate(q, snapshot.now_s)):
            reason = "rate not known yet" if rate is None else f"{rate:.1f} rows out per s of work"
            yield Admission(query.name, reason)

    def _weigh(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Values:
        """Weigh by results per second of work; who is not known yet comes first, to become known.

        A source has no input to go by and comes last: what it would add can wait outside.
        """
        rates = metrics["highest-rate"]
        best, worst = max(rates.values(), default=1.0), min(rates.values(), default=1.0)
        return {o.name: worst if o.source else rates.get(o.name, best) for o in operators}


def output_rate(query: QueryState, now_s: float) -> float | None:
    """Return rows out per second of work if a batch ran now; ``None`` where a metric is missing.

    >>> from slackwater.core import QueryMetrics, QuerySpec
    >>> metrics = QueryMetrics(
    ...     backlog_rows=1000, selectivity=0.1, batch_fixed_s=0.1, batch_per_row_s=0.0001
    ... )
    >>> output_rate(QueryState(QuerySpec("q"), metrics=metrics), now_s=0.0)
    500.0
    """
    metrics, rows = query.metrics, rows_waiting(query, now_s)
    fixed_s, per_row_s = metrics.batch_fixed_s, metrics.batch_per_row_s
    if rows is None or metrics.selectivity is None or fixed_s is None or per_row_s is None:
        return None
    work_s = fixed_s + per_row_s * rows
    rows_out = metrics.selectivity * rows
    if work_s > 0:
        return rows_out / work_s
    return math.inf if rows_out else 0.0
