"""What all policies share: the bound on admissions and the bound on waiting."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import ClassVar

from slackwater.core.entities import Operator, Priorities, Scale, Values
from slackwater.core.errors import UsageError
from slackwater.core.model import (
    Admission,
    Figures,
    Prospect,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Schedule,
    Snapshot,
)

# A query is served before all others once it has waited for this share of its maximum: the rest
# is left for the micro-batches that are ahead of it, because none of them can be preempted.
OVERDUE_SHARE = 0.5

ROUNDS = 4.0  # of all queries through all slots: a shorter bound on waiting cannot be kept
MEASURE_S = 1.0  # between two looks at the load
MANY = 1000  # queries of which more are looked at less often


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
    metrics: ClassVar[tuple[str, ...]] = ("queue-size",)  # of operators, for priorities
    scale: ClassVar[Scale] = "linear"  # how the distance of two priorities is meant

    # Not set by __init__: a policy with one of its own need not call this one.
    _load_round_s: float = 0.0  # bound on waiting that the load asks for
    _load_hold_s: float = 0.0  # and the one that gates are told: nobody is to open before
    __measured_s: float = -math.inf

    def __init__(self, seed: int = 0) -> None:
        self.seed = seed

    def decide(self, snapshot: Snapshot) -> Schedule:
        """Admit at most as many as there are free slots: the overdue first, then by rank."""
        self._measure_load(snapshot)
        waiting = snapshot.waiting
        if not waiting or snapshot.free_slots == 0:
            return Schedule(hold_s=self._load_hold_s)
        overdue, next_overdue_s = self._find_overdue(snapshot)
        overdue.sort(key=lambda query: (query.since_s + query.spec.max_wait_s, query.name))
        chosen = [self._overdue(q, snapshot) for q in islice(overdue, snapshot.free_slots)]
        room = snapshot.free_slots - len(chosen)
        if room and len(overdue) < len(waiting):
            served = {query.name for query in overdue}
            others = [q for q in waiting if q.name not in served] if served else waiting
            chosen += self.__first_ranked(others, snapshot, room)
        wake_s = next_overdue_s if math.isfinite(next_overdue_s) else None
        return Schedule(tuple(chosen), wake_s, self._load_hold_s)

    def held_up(self, snapshot: Snapshot) -> dict[str, float]:
        """Return who would be let in now if there were slots enough, and since when."""
        return {query.name: query.since_s for query in snapshot.waiting}

    def _measure_load(self, snapshot: Snapshot) -> bool:
        """Stretch the bound on waiting where more is to be done than it leaves time for.

        A bound that nobody can keep would open gates all at once, and in no order. Returns whether
        it was time to measure.
        """
        period_s = MEASURE_S * max(1.0, len(snapshot.queries) / MANY)
        if 0.0 <= snapshot.now_s - self.__measured_s < period_s:
            return False
        self.__measured_s = snapshot.now_s
        self._load_round_s = self._load_hold_s = ROUNDS * snapshot.round_s
        return True

    # Two underscores: a member may have anything of its own under a plain name.
    def __first_ranked(
        self, waiting: Sequence[QueryState], snapshot: Snapshot, room: int
    ) -> list[Admission]:
        """Return the first few of the ranking; refuse what is none."""
        ranked: Iterable[Admission] | None = self._rank(waiting, snapshot)
        if ranked is None:
            raise UsageError(
                f"{self.name}: _rank returned None; yield an Admission for each query, or return "
                "a list of them"
            )
        chosen = list(islice(ranked, room))
        for each in chosen:
            if not isinstance(each, Admission):
                raise UsageError(f"{self.name}: _rank gave {each!r}, which is no Admission")
        return chosen

    def outlook(self, now_s: float) -> dict[str, Figures]:
        """Return what it expects of each query, for those who watch."""
        return {}

    def prospects(self, now_s: float) -> dict[str, Prospect]:
        """Return when those that waited at the last decision will be let in, as far as it knows."""
        return {}

    def _find_overdue(self, snapshot: Snapshot) -> tuple[list[QueryState], float]:
        """Return those that waited for too long, and when the first of the others will have."""
        times_s = [overdue_s(query, self._load_round_s) for query in snapshot.waiting]
        pairs = zip(snapshot.waiting, times_s, strict=True)
        overdue = [query for query, at_s in pairs if at_s <= snapshot.now_s]
        return overdue, min((at_s for at_s in times_s if at_s > snapshot.now_s), default=math.inf)

    def _overdue(self, query: QueryState, snapshot: Snapshot) -> Admission:
        """Admit a query that has waited for too long."""
        waited_s = query.waited_s(snapshot.now_s)
        return Admission(query.name, f"waited {waited_s:.1f} s, close to its maximum")

    def priorities(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Priorities:
        """Return how important operators are, for engines steered through the kernel."""
        return Priorities(self._weigh(operators, metrics, now_s), self.scale)

    def _weigh(
        self, operators: Sequence[Operator], metrics: Mapping[str, Values], now_s: float
    ) -> Values:
        """Weigh operators by the order in which their queries, all waiting, would be admitted.

        Policies that go by a figure of operators say so themselves.
        """
        queued: dict[str, float] = {}
        for operator in operators:
            rows = metrics.get("queue-size", {}).get(operator.name, 0.0)
            queued[operator.query] = queued.get(operator.query, 0.0) + rows
        states = tuple(
            QueryState(QuerySpec(name), "waiting", now_s, metrics=QueryMetrics(backlog_rows=rows))
            for name, rows in queued.items()
        )
        snapshot = Snapshot(now_s, len(states), states)
        order = [admission.query for admission in self._rank(states, snapshot)]
        places = {name: float(len(states) - place) for place, name in enumerate(order)}
        return {operator.name: places.get(operator.query, 0.0) for operator in operators}

    @abstractmethod
    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        """Rank those to admit, most urgent first; who is left out is asked about again."""


def overdue_s(query: QueryState, least_s: float = 0.0) -> float:
    """Return when a query that waits is served before all others.

    Parameters
    ----------
    least_s
        Bound on waiting that the load asks for, where it is longer than the query's own.
    """
    return query.since_s + OVERDUE_SHARE * max(query.spec.max_wait_s, least_s)


def largest_first(
    waiting: Sequence[QueryState], figure: Callable[[QueryState], float | None]
) -> list[tuple[float | None, QueryState]]:
    """Return queries with a figure of each, the largest first; those without one before all.

    Who is not known yet becomes known that way. Of equals the one that has waited longest goes
    first.

    >>> waiting = [QueryState(QuerySpec(name)) for name in ("small", "large", "new")]
    >>> figures = {"small": 1.0, "large": 2.0}
    >>> [query.name for _, query in largest_first(waiting, lambda query: figures.get(query.name))]
    ['new', 'large', 'small']
    """
    found = [(figure(query), query) for query in waiting]
    found.sort(key=lambda pair: (pair[0] is not None, -(pair[0] or 0), pair[1].since_s))
    return found


def unknown_first(operators: Sequence[Operator], values: Values) -> dict[str, float]:
    """Return a figure of each operator; who has none yet counts as the first, to become known.

    Whoever has only just begun would otherwise be held back, and so stay unknown. A source has no
    queue: what it would add can wait outside.

    >>> operators = [Operator("source", "q", source=True), Operator("a", "q"), Operator("new", "q")]
    >>> unknown_first(operators, {"a": 5.0})
    {'source': 0.0, 'a': 5.0, 'new': 5.0}
    """
    highest = max(values.values(), default=0.0)
    return {o.name: values.get(o.name, 0.0 if o.source else highest) for o in operators}
