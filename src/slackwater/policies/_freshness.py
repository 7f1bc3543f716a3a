"""What a query promises between the ends of windows, and how old what it shows is."""

import math

from slackwater.core.model import QueryState
from slackwater.policies._known import UNKNOWN_COST_S, Known

OLD = 0.5  # of a target: how old rows may be when they come, for it to be kept all the same


def work_s(known: Known) -> float:
    """Return how long a batch takes a slot; what it does before it waits for its sink is little."""
    if known.slow_sink:
        return UNKNOWN_COST_S
    return known.work_s if math.isfinite(known.work_s) else known.fixed_s


def age_s(query: QueryState) -> float:
    """Return how old the newest row was when it was read; what is not known adds nothing.

    Beyond half of the target no number of batches makes up for it.
    """
    metrics, target_s = query.metrics, query.spec.target_s or 0.0
    if metrics.max_event_s is None or metrics.batch_start_s is None:
        return 0.0
    return min(max(0.0, metrics.batch_start_s - metrics.max_event_s), OLD * target_s)


def shown_s(query: QueryState) -> float:
    """Return the time of the newest row that a query shows, or when its last batch began."""
    metrics = query.metrics
    newest_s = metrics.batch_start_s if metrics.max_event_s is None else metrics.max_event_s
    return -math.inf if newest_s is None else newest_s


def closes_sessions(query: QueryState) -> bool:
    """Tell whether the next batch writes sessions that the last one has seen the end of."""
    deadlines, metrics = query.spec.deadlines, query.metrics
    if query.spec.one_batch or deadlines.output_mode != "append":
        return False
    moved = (metrics.next_watermark_s or 0.0) > (metrics.watermark_s or 0.0)
    return moved and any(window.kind == "session" for window in deadlines.windows)


def is_promised(query: QueryState) -> bool:
    """Tell whether somebody has said how often it is to be refreshed."""
    return query.spec.target_s is not None or query.spec.trigger_s is not None


def is_refreshed(query: QueryState) -> bool:
    """Tell whether a query shows results between the ends of windows."""
    deadlines = query.spec.deadlines
    return not deadlines.has_deadline or deadlines.output_mode != "append"
