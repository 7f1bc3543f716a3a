"""Why a query waits now, in one sentence. Everyone who shows it has it from here."""

from collections.abc import Mapping, Sequence

from slackwater.common.moments import clock_time, roughly
from slackwater.core.model import Prospect, QueryState

AT_ITS_END_S = 1.0  # who is let in so soon after a window's end waits for just that


def why_held(
    waiting: Sequence[QueryState],
    prospects: Mapping[str, Prospect],
    free_slots: int,
    now_s: float,
) -> dict[str, str]:
    """Say of each query at its gate why it is there.

    Parameters
    ----------
    prospects
        What the policy says of them; it need not say anything.

    Examples
    --------
    >>> from slackwater.core.model import QuerySpec
    >>> waiting = [QueryState(QuerySpec(name), "waiting") for name in ("shop", "ads")]
    >>> prospects = {"shop": Prospect("refresh", due_s=138.0, overdue_s=900.0)}
    >>> why_held(waiting, prospects, free_slots=0, now_s=100.0)
    {'shop': 'next refresh in 38 s', 'ads': 'no slot free, 1 other waits too'}
    """
    others = len(waiting) - 1
    found = {}
    for state in waiting:
        prospect = prospects.get(state.name)
        found[state.name] = (
            _not_allowed(state, now_s)
            or (prospect and _not_due(prospect, now_s))
            or _due(prospect, free_slots, others)
        )
    return found


def _not_allowed(state: QueryState, now_s: float) -> str | None:
    """Say what keeps it from beginning, whatever the policy."""
    until_s = state.may_begin_s(now_s)
    if until_s <= now_s:
        return None
    if state.spec.kept_open_until_s(now_s) > now_s:
        return f"held until {clock_time(until_s)} (its window is kept open for late rows)"
    return f"next batch in {roughly(until_s - now_s)} (its batches are kept apart, CPU is scarce)"


def _not_due(prospect: Prospect, now_s: float) -> str | None:
    """Say what it waits for, if its batch would be of no use yet."""
    due_s = prospect.due_s
    if due_s <= now_s or prospect.overdue_s <= now_s:
        return None
    if prospect.work == "look":
        again_s = min(due_s, prospect.overdue_s)
        return f"its source is silent, looked at again in {roughly(again_s - now_s)}"
    if prospect.overdue_s < due_s:
        return f"held until {clock_time(prospect.overdue_s)} (half of its longest wait)"
    if prospect.work == "refresh":
        return f"next refresh in {roughly(due_s - now_s)}"
    end_s = prospect.window_end_s
    if end_s is None or end_s <= due_s < end_s + AT_ITS_END_S:
        return f"held until {clock_time(due_s)} (its window's end)"
    ends = "ends" if end_s > now_s else "ended"
    return f"held until {clock_time(due_s)} (its window {ends} at {clock_time(end_s)})"


def _due(prospect: Prospect | None, free_slots: int, others: int) -> str:
    """Say why it is not let in though it could be."""
    if free_slots > 0:
        if prospect and prospect.work == "refresh":
            return "gives way to windows that are due soon"
        return "about to be let in" if prospect else "the policy has not let it in yet"
    if prospect is None or prospect.ahead is None:
        return "no slot free" + (f", {_others(others, 'waits')} too" if others > 0 else "")
    if prospect.ahead == 0:
        return "next in line, no slot free"
    return f"behind {_others(prospect.ahead)}, no slot free"


def _others(number: int, verb: str = "") -> str:
    one = number == 1
    noun = "1 other" if one else f"{number} others"
    return f"{noun} {verb if one else verb.removesuffix('s')}".strip()
