"""The status of running fleets as a table for terminals."""

from rich.table import Table
from rich.text import Text

from slackwater.engines.spark.queries.status import SHOWN, in_time, two_batches
from slackwater.operations.dashboard.status import FleetStatus, QueryStatus


def status_table(fleet: FleetStatus, queries: list[QueryStatus]) -> Table:
    """Show one fleet, as ``/status`` has it."""
    table = Table(
        title=f"fleet {fleet.name}: {fleet.state}, policy {fleet.policy}, "
        f"{fleet.running} of {fleet.slots} slots",
        title_justify="left",
        caption=Text("\n".join(two_batches({q.name: q.why_two_batches for q in queries}))) or None,
        caption_justify="left",
    )
    table.add_column("query", overflow="fold")
    table.add_column("state")
    for name in (
        "priority",
        "slack s",
        "latency s",
        "target s",
        "in time",
        "lag rows",
        "lag s",
        "rows/s",
        "late",
    ):
        table.add_column(name, justify="right")
    shown = SHOWN if any(query.accuracy for query in queries) else ()
    tables = any(query.age_s is not None or query.every_s is not None for query in queries)
    for name in (*shown, *(("age s", "every s") if tables else ())):
        table.add_column(name, justify="right")
    waits = any(query.waits for query in queries)
    if waits:
        table.add_column("waits", overflow="fold")
    table.add_column("error", overflow="fold")
    for query in queries:
        table.add_row(
            Text(query.name),
            query.state,
            _text(query.priority, "g"),
            _text(query.slack_s, "+.2f"),
            _text(query.latencies_s[-1] if query.latencies_s else None, ".2f"),
            _text(query.target_s, "g"),
            in_time(query.kept, query.broken),
            _text(query.lag_rows, ".0f"),
            _text(query.lag_s, ".1f"),
            _text(query.input_rows_per_second, ".0f"),
            _text(query.rows_dropped_by_watermark, "d"),
            *(_text(getattr(query.accuracy, name, None), ".0%") for name in shown),
            *((_text(query.age_s, ".0f"), _text(query.every_s, "g")) if tables else ()),
            *((query.waits or "",) if waits else ()),
            Text(query.error or ""),  # it may look like markup
        )
    return table


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
