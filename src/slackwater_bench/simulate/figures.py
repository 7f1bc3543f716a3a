"""The rows of an experiment as texts, for the terminal and for the page."""

from typing import Any

from rich.table import Table

from slackwater_bench.tables import figures_table

_HEADINGS = {"memory_bytes": "memory GB", "events_per_s": "M events/s", "collecting": "GC %"}
FULL = 0.9  # of the cores busy: below, hardly anything has to wait
_SCALES = {"memory_bytes": 1e-9, "events_per_s": 1e-6, "collecting": 100.0}


def headings(result: dict[str, Any]) -> list[str]:
    """Return the headings of the columns.

    >>> headings({"columns": ["policy", "memory_bytes", "p99_s", "busy_cores"]})
    ['policy', 'memory GB', 'p99 s', 'busy cores']
    """
    return [_heading(column) for column in result["columns"]]


def cells(result: dict[str, Any]) -> list[list[str]]:
    """Return the rows as texts.

    >>> cells({"columns": ["mean_s", "memory_bytes"], "rows": [{"mean_s": 1, "memory_bytes": 2e9}]})
    [['1', '2.00']]
    """
    columns = result["columns"]
    return [[_cell(column, row[column]) for column in columns] for row in result["rows"]]


def table(result: dict[str, Any]) -> Table:
    """Return the table for the terminal."""
    grid = figures_table(str(result["title"]), "", *headings(result), names=0)
    for row in cells(result):
        grid.add_row(*row)
    return grid


def note(result: dict[str, Any]) -> str | None:
    """Say why there is little to see, where there is.

    >>> row = {"policy": "klink", "cores": 24, "nodes": 1, "busy_cores": 12.0}
    >>> note({"rows": [row]})
    'at most 50 % of the cores are busy: policies differ where work has to wait; try more --queries'
    """
    rows = [row for row in result["rows"] if row.get("busy_cores") is not None]
    busiest = max((r["busy_cores"] / (r["cores"] * r["nodes"]) for r in rows), default=1.0)
    if busiest >= FULL:
        return None
    return (
        f"at most {100 * busiest:.0f} % of the cores are busy: policies differ where work has to "
        "wait; try more --queries"
    )


def _heading(column: str) -> str:
    if column in _HEADINGS:
        return _HEADINGS[column]
    return f"{column[:-2]} s" if column.endswith("_s") else column.replace("_", " ")


def _cell(column: str, value: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    shown = value * _SCALES.get(column, 1.0)
    return f"{shown:.2f}" if abs(shown) < 1000 else f"{shown:.0f}"
