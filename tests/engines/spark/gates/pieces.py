"""A policy that limits rows as it is told, for tests."""

from collections.abc import Iterable, Sequence

from slackwater.core.model import Admission, QueryState, Snapshot
from slackwater.policies.base import Policy

NAME = f"{__name__}:Pieces"


class Pieces(Policy):
    """Admits whoever waits; the first batches have limits of their own."""

    name = "pieces"

    def __init__(
        self, seed: int = 0, *, rows: int | None = None, first: Sequence[int | None] = ()
    ) -> None:
        super().__init__(seed)
        self._rows = rows
        self._early = first

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        for query in waiting:
            early = query.admissions < len(self._early)
            limit = self._early[query.admissions] if early else self._rows
            yield Admission(query.name, "as told", row_limit=limit)

    def _overdue(self, query: QueryState, snapshot: Snapshot) -> Admission:
        return next(iter(self._rank([query], snapshot)))
