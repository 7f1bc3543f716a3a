"""Decisions as a table that people can read."""

from collections.abc import Iterable, Iterator

from rich.table import Table

from slackwater.common.listing import names
from slackwater.common.moments import clock_time, roughly
from slackwater.core.model import Decision, Figures
from slackwater.operations.dashboard.status import QueryStatus


def decision_table(decisions: Iterable[Decision]) -> Table:
    """Show decisions, newest first, one row an admission."""
    table = Table("time", "query", "why", "waited s", "window's end", "watermark due", "cost s")
    table.add_column("also waiting")
    table.add_column("running")
    for decision in decisions:
        figures = decision.figures or Figures("")
        table.add_row(
            _clock(decision.at_s),
            decision.query + ("" if decision.enforced else " (dry run)"),
            decision.reason,
            f"{decision.waited_s:.2f}",
            _clock(figures.window_end_s),
            due(figures, decision.at_s),
            _seconds(figures.cost_s),
            names(decision.waiting),
            names(decision.running),
        )
    return table


def waits_now(queries: Iterable[QueryStatus]) -> Iterator[str]:
    """Say why queries wait now, or what else they do."""
    for query in queries:
        if query.waits is None:
            yield f"{query.name} now: {query.state}"
        else:
            yield f"{query.name} now: {query.waits}; it has waited for {roughly(query.waited_s)}"


def due(figures: Figures, at_s: float) -> str:
    """Tell when the sweeping watermark was expected, with its interval, seen from the decision.

    >>> due(Figures("sweep", arrival_s=10.02, arrival_low_s=10.0, arrival_high_s=10.05), 10.1)
    '-0.08 s (-0.10 to -0.05)'
    >>> due(Figures("drain"), 10.1)
    ''
    """
    arrival_s, low_s, high_s = figures.arrival_s, figures.arrival_low_s, figures.arrival_high_s
    if arrival_s is None:
        return ""
    if low_s is None or high_s is None:  # as far as infinity
        return f"{arrival_s - at_s:+.2f} s"
    return f"{arrival_s - at_s:+.2f} s ({low_s - at_s:+.2f} to {high_s - at_s:+.2f})"


def _clock(time_s: float | None) -> str:
    return "" if time_s is None else f"{clock_time(time_s)}.{int(time_s % 1 * 1000):03d}"


def _seconds(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
