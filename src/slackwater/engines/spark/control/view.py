"""A controller's queries as those see them who watch: small, because it is asked for often."""

from typing import Any

from slackwater.core.model import QueryState

SHOWN = (
    "batches",
    "rows",
    "backlog_rows",
    "arrival_rate",
    "service_rate",
    "batch_s",
    "batch_start_s",
    "max_event_s",
    "watermark_s",
    "state_rows",
    "state_bytes",
)


def view(state: QueryState, stage: str) -> dict[str, Any]:
    """One query.

    >>> from slackwater.core.model import QuerySpec
    >>> found = view(QueryState(QuerySpec("ads"), "waiting", 3.0), "sweep")
    >>> found["name"], found["phase"], found["since_s"], found["metrics"]["batches"]
    ('ads', 'waiting', 3.0, 0)
    """
    spec, metrics = state.spec, state.metrics
    return {
        "name": spec.name,
        "priority": spec.priority,
        "max_wait_s": spec.max_wait_s,
        "target_s": spec.target_s,
        "phase": state.phase,
        "since_s": state.since_s,
        "admitted_s": state.admitted_s,
        "admissions": state.admissions,
        "stage": stage,
        "metrics": {name: getattr(metrics, name) for name in SHOWN},
    }
