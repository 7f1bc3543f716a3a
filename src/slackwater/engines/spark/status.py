"""What a fleet looks like now: a table for terminals and notebooks."""

from dataclasses import dataclass
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """One row of the table."""

    name: str
    phase: str  # waiting, running, idle, starting, stopped, failed
    gate: str  # clock, source, none
    priority: float
    waited_s: float = 0.0
    batches: int = 0
    rows: int = 0
    input_rate: float | None = None  # inputRowsPerSecond
    lag_rows: float | None = None
    lag_s: float | None = None  # how far the newest event that was read is behind now
    batch_s: float | None = None
    state_rows: int | None = None
    restarts: int = 0
    error: str | None = None  # first line


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """All queries of a fleet, and how its controller is."""

    name: str
    policy: str
    gate: str  # which gate, and why
    controller: str  # running, off, …
    slots: int
    queries: tuple[QueryStatus, ...]

    COLUMNS = (
        "query", "phase", "gate", "priority", "waited s", "batches", "rows/s", "lag rows", "lag s",
        "batch s", "state rows", "restarts", "error",
    )  # fmt: skip

    def rows(self) -> list[tuple[str, ...]]:
        """The cells of the table, as text."""
        return [
            (
                q.name,
                q.phase,
                q.gate,
                f"{q.priority:g}",
                f"{q.waited_s:.1f}",
                str(q.batches),
                _text(q.input_rate, ".0f"),
                _text(q.lag_rows, ".0f"),
                _text(q.lag_s, ".2f"),
                _text(q.batch_s, ".3f"),
                _text(q.state_rows, "d"),
                str(q.restarts),
                q.error or "",
            )
            for q in self.queries
        ]

    @property
    def title(self) -> str:
        return (
            f"fleet {self.name}: policy {self.policy}, {self.slots} slots, "
            f"gate {self.gate}, controller {self.controller}"
        )

    def table(self) -> Any:
        """A rich table."""
        from rich.table import Table

        table = Table(title=self.title, title_justify="left")
        for index, column in enumerate(self.COLUMNS):
            table.add_column(column, justify="left" if index < 3 else "right", overflow="fold")
        for row in self.rows():
            table.add_row(*row)
        return table

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=160)
        console.print(self.table())
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip()

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{escape(column)}</th>" for column in self.COLUMNS)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows()
        )
        title = escape(self.title)
        return f"<p>{title}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
