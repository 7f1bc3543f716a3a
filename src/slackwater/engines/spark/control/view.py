"""A controller's queries as they are answered to those who ask."""

from slackwater.core.model import QueryState
from slackwater.ipc.messages import copy_fields, spec_fields
from slackwater.ipc.questions import MetricsView, QueryEntry, QueryView
from slackwater.metrics.promises import PromiseObserver


def view(
    state: QueryState, stage: str, promises: PromiseObserver, waits: str | None = None
) -> QueryView:
    """Show one query to those who watch.

    >>> from slackwater.core.model import QuerySpec
    >>> state = QueryState(QuerySpec("ads"), "waiting", 3.0)
    >>> found = view(state, "sweep", PromiseObserver())
    >>> found.name, found.phase, found.since_s, found.metrics.batches
    ('ads', 'waiting', 3.0, 0)
    """
    spec = state.spec
    return QueryView(
        name=spec.name,
        priority=spec.priority,
        max_wait_s=spec.max_wait_s,
        target_s=spec.target_s,
        phase=state.phase,
        since_s=state.since_s,
        admitted_s=state.admitted_s,
        admissions=state.admissions,
        stage=stage,
        metrics=copy_fields(state.metrics, MetricsView),
        kept=promises.kept,
        broken=promises.broken,
        in_sink=state.in_sink,
        waits=waits,
    )


def entry(
    state: QueryState, now_s: float, promises: PromiseObserver, waits: str | None = None
) -> QueryEntry:
    """Show all that is known of one query."""
    return QueryEntry(
        spec=spec_fields(state.spec),
        phase=state.phase,
        since_s=state.since_s,
        admitted_s=state.admitted_s,
        admissions=state.admissions,
        metrics=state.metrics,
        waited_s=state.waited_s(now_s),
        in_sink=state.in_sink,
        waits=waits,
        kept=promises.kept,
        broken=promises.broken,
    )
