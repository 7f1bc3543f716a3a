"""What all policies share: the bound on admissions and the bound on waiting."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import ClassVar

from slackwater.core.model import Admission, QueryState, Schedule, Snapshot

# A query is served before all others once it has waited for this share of its maximum: the rest
# is left for the micro-batches that are ahead of it, because none of them can be preempted.
OVERDUE_SHARE = 0.5


class Policy(ABC):
    """Base of every policy.

    A member writes :meth:`_rank`; the bounds that every policy must keep are kept here.

    Parameters
    ----------
    seed
        For policies that draw random numbers; the same seed gives the same decisions.
    """

    name: ClassVar[str] = ""  # as users write it
    gated: ClassVar[bool] = True  # False: queries are not held at all

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def decide(self, snapshot: Snapshot) -> Schedule:
        """Admit at most as many as there are free slots: the overdue first, then by rank."""
        waiting = snapshot.waiting
        if not waiting or snapshot.free_slots == 0:
            return Schedule()
        overdue, others, next_overdue_s = _split_overdue(waiting, snapshot.now_s)
        chosen = [self._overdue(q, snapshot) for q in islice(overdue, snapshot.free_slots)]
        room = snapshot.free_slots - len(chosen)
        if room and others:
            chosen.extend(islice(self._rank(others, snapshot), room))
        return Schedule(tuple(chosen), next_overdue_s)

    def _overdue(self, query: QueryState, snapshot: Snapshot) -> Admission:
        """The admission of a query that has waited for too long."""
        waited_s = query.waited_s(snapshot.now_s)
        return Admission(query.name, f"waited {waited_s:.1f} s, close to its maximum")

    @abstractmethod
    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        """Those to admit, most urgent first. May leave some out: they are asked about again."""


def overdue_s(query: QueryState) -> float:
    """When a query that waits is served before all others."""
    return query.since_s + OVERDUE_SHARE * query.spec.max_wait_s


def _split_overdue(
    waiting: Sequence[QueryState], now_s: float
) -> tuple[Sequence[QueryState], Sequence[QueryState], float | None]:
    """Those to serve at once, the others, and when the first of these will be overdue."""
    # overdue_s(), written out: there may be ten thousand.
    at_s = [query.since_s + OVERDUE_SHARE * query.spec.max_wait_s for query in waiting]
    next_s = min(at_s)
    if next_s > now_s:  # nearly always
        return [], waiting, next_s
    overdue = [query for query, due_s in zip(waiting, at_s, strict=True) if due_s <= now_s]
    others = [query for query, due_s in zip(waiting, at_s, strict=True) if due_s > now_s]
    overdue.sort(key=lambda query: (query.since_s + query.spec.max_wait_s, query.name))
    return overdue, others, min((due_s for due_s in at_s if due_s > now_s), default=None)
