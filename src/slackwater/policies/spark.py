"""Spark as it is."""

from collections.abc import Iterable, Sequence

from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy


class Spark(Policy):
    """No control: queries are not held, Spark runs their micro-batches as it likes."""

    name = "spark"
    gated = False

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return (Admission(query.name, "not controlled") for query in waiting)
