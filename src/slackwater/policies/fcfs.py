"""First come, first served."""

from collections.abc import Iterable, Sequence

from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy


class Fcfs(Policy):
    """Admits the query that has been at the gate for longest."""

    name = "fcfs"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        for query in sorted(waiting, key=lambda q: (q.since_s, q.name)):
            waited_s = query.waited_s(snapshot.now_s)
            yield Admission(query.name, f"first at the gate ({waited_s:.2f} s)")
