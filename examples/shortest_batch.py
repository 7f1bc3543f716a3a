"""A policy of your own: whoever takes least time for each unit of priority goes first.

Shortest job first, weighted, keeps the mean wait low when micro-batches cannot be preempted.

``slackwater run --policy examples.shortest_batch:ShortestBatch``
"""

from collections.abc import Iterable, Sequence

from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies import Policy


class ShortestBatch(Policy):
    """Admit by the expected length of the next batch ÷ priority.

    Parameters
    ----------
    unknown_s
        The length that is assumed of a query that has not run yet.
    """

    name = "shortest-batch"

    def __init__(self, seed: int = 0, unknown_s: float = 0.0) -> None:
        super().__init__(seed)
        self.unknown_s = unknown_s

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        for query in sorted(waiting, key=self._weighted_s):
            yield Admission(query.name, f"its batch takes {self._length_s(query):.2f} s")

    def _weighted_s(self, query: QueryState) -> tuple[float, float, str]:
        priority = max(query.spec.priority, 1e-9)
        return self._length_s(query) / priority, query.since_s, query.name

    def _length_s(self, query: QueryState) -> float:
        """Estimate the next batch: a fixed cost, and a cost for each row that waits."""
        metrics = query.metrics
        if metrics.batch_fixed_s is None:
            return self.unknown_s
        return metrics.batch_fixed_s + (metrics.batch_per_row_s or 0) * (metrics.backlog_rows or 0)
