"""The status of running fleets as a table for terminals."""

from slackwater.engines.spark.queries.status import IMPORTANT, SHOWN, in_time, two_batches
from slackwater.operations.dashboard.status import FleetStatus, QueryStatus
from slackwater.report.terminal_table import TerminalTable

_LEFT, _SENTENCES = frozenset({"query", "state"}), frozenset({"waits", "error"})
_ALWAYS = frozenset(
    {"query", "state", "slack s", "latency s", "lag rows", "lag s", "rows/s", "late"}
)


def status_table(fleet: FleetStatus, queries: list[QueryStatus]) -> TerminalTable:
    """Show one fleet, as ``/status`` has it, without columns that would say nothing."""
    found = {
        "query": [q.name for q in queries],
        "state": [q.state for q in queries],
        "priority": [_text(q.priority, "g") for q in queries],
        "slack s": [_text(q.slack_s, "+.2f") for q in queries],
        "latency s": [_text(q.latencies_s[-1] if q.latencies_s else None, ".2f") for q in queries],
        "target s": [_text(q.target_s, "g") for q in queries],
        "in time": [in_time(q.kept, q.broken) for q in queries],
        "lag rows": [_text(q.lag_rows, ".0f") for q in queries],
        "lag s": [_text(q.lag_s, ".1f") for q in queries],
        "rows/s": [_text(q.input_rows_per_second, ".0f") for q in queries],
        "late": [_text(q.rows_dropped_by_watermark, "d") for q in queries],
        **{
            name: [_text(getattr(q.accuracy, name, None), ".0%") for q in queries] for name in SHOWN
        },
        "age s": [_text(q.age_s, ".0f") for q in queries],
        "every s": [_text(q.every_s, "g") for q in queries],
        "waits": [q.waits or "" for q in queries],
        "error": [q.error or "" for q in queries],
    }
    columns = {name: cells for name, cells in found.items() if name in _ALWAYS or any(cells)}
    title = (
        f"fleet {fleet.name}: {fleet.state}, policy {fleet.policy}, "
        f"{fleet.running} of {fleet.slots} slots"
    )
    notes = two_batches({q.name: q.why_two_batches for q in queries})
    return TerminalTable(title, columns, IMPORTANT, _LEFT, _SENTENCES, notes)


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
