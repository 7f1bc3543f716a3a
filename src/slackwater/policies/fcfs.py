"""First come, first served."""

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from slackwater.core.entities import Operator, Values
from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy, unknown_first


class Fcfs(Policy):
    """Admits the query that has been at the gate for longest."""

    name = "fcfs"
    metrics: ClassVar = ("head-age",)

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        for query in sorted(waiting, key=lambda q: (q.since_s, q.name)):
            waited_s = query.waited_s(snapshot.now_s)
            yield Admission(query.name, f"first at the gate ({waited_s:.2f} s)")

    def _weigh(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Values:
        """Weigh each operator by the age of the oldest tuple before it."""
        return unknown_first(operators, metrics["head-age"])
