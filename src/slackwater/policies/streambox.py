"""StreamBox."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from slackwater.core.model import Admission, QueryState, Schedule, Snapshot
from slackwater.policies.base import Policy

# A query is back at the gate a moment after its batch; its slot is kept free for so long.
RETURN_S = 0.25


class Streambox(Policy):
    """Chooses the query with the closest window end and stays with it until its watermark is past.

    Up to C queries are chosen at a time. Those without a deadline come last and are never kept.

    References
    ----------
    Miao et al., *StreamBox: Modern Stream Processing on a Multicore Machine*, USENIX ATC 2017.
    """

    name = "streambox"

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        self._chosen: dict[str, float] = {}  # query: the window end that it is to pass

    def decide(self, snapshot: Snapshot) -> Schedule:
        schedule = super().decide(snapshot)
        frees_s = (
            q.since_s + RETURN_S
            for q in snapshot.queries
            if q.name in self._chosen and q.phase == "idle"
        )
        times_s = [schedule.wake_at_s, *(at_s for at_s in frees_s if at_s > snapshot.now_s)]
        return replace(schedule, wake_at_s=min(filter(None, times_s), default=None))

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        self._forget_passed(snapshot)
        kept = sorted(
            (q for q in waiting if q.name in self._chosen), key=lambda q: self._chosen[q.name]
        )
        for query in kept:
            yield Admission(query.name, _away("stays until its window end", query, self._chosen))
        room = snapshot.slots - sum(self._holds_a_slot(q, snapshot) for q in snapshot.queries)
        others = [
            (_deadline_s(q, snapshot.now_s), q) for q in waiting if q.name not in self._chosen
        ]
        others.sort(key=lambda pair: (pair[0], pair[1].since_s, pair[1].name))
        for end_s, query in others[: max(0, room)]:
            if math.isinf(end_s):
                yield Admission(query.name, "no deadline; a slot was free")
                continue
            if query.metrics.watermark_s is not None:  # else nothing tells when it has passed
                self._chosen[query.name] = end_s
            left_s = end_s - snapshot.now_s
            yield Admission(query.name, f"closest window end, {left_s:+.2f} s from now")

    def _forget_passed(self, snapshot: Snapshot) -> None:
        watermarks = {q.name: q.metrics.watermark_s for q in snapshot.queries}
        self._chosen = {
            name: end_s
            for name, end_s in self._chosen.items()
            if name in watermarks and (watermarks[name] or 0.0) < end_s
        }

    def _holds_a_slot(self, query: QueryState, snapshot: Snapshot) -> bool:
        if query.name not in self._chosen:
            return query.phase == "running"
        return query.phase != "idle" or snapshot.now_s - query.since_s < RETURN_S


def _deadline_s(query: QueryState, now_s: float) -> float:
    """Return the first window end that the watermark has not passed; infinite: none."""
    if not query.spec.deadlines.has_deadline:
        return math.inf
    watermark_s = query.metrics.watermark_s
    reached_s = now_s if watermark_s is None else watermark_s
    return min(window.next_end(reached_s) for window in query.spec.deadlines.closing)


def _away(what: str, query: QueryState, chosen: dict[str, float]) -> str:
    left_s = chosen[query.name] - (query.metrics.watermark_s or 0.0)
    return f"{what}, {left_s:.2f} s ahead of its watermark"
