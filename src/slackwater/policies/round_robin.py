"""Round-robin."""

from collections.abc import Iterable, Sequence

from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy


class RoundRobin(Policy):
    """Goes round the queries by name; whoever is not at the gate when its turn comes is skipped."""

    name = "round-robin"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._last = ""  # whose turn it was last

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        after_last = sorted(waiting, key=lambda q: (q.name <= self._last, q.name))
        for query in after_last:
            reason = f"next after {self._last}" if self._last else "first round"
            self._last = query.name
            yield Admission(query.name, reason)
