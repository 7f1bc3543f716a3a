"""What a fleet looks like now: a table for terminals and notebooks, notes for those who watch."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING

from msgspec import UNSET

from slackwater.common.listing import names
from slackwater.core.clock import RealClock
from slackwater.core.model import QueryMetrics
from slackwater.engines.spark.queries.record import Accuracies, Freshness, QueryRecord, State
from slackwater.ipc.messages import Accuracy, Note, TableNote, copy_fields
from slackwater.ipc.questions import QueryEntry

if TYPE_CHECKING:
    from slackwater.report.terminal_table import TerminalTable

SHOWN = ("minimum", "desired", "current", "delivered")  # accuracies in the table
# What stays in a table where a terminal is narrow, the first before the others.
IMPORTANT = (
    "state", "error", "waits", "latency s", "age s", "lag s", "target s", "every s", "in time",
    "slack s", "lag rows", "rows/s",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class QueryStatus:
    """One row of the table."""

    name: str
    # held, running, in sink, idle, starting, paused, stopped, failed; of tables that are refreshed
    # by runs: fresh, due, running, retrying, paused, stopped, failed
    state: str
    gate: str  # clock, source, none
    priority: float
    waited_s: float = 0.0
    waits: str | None = None  # why, in one sentence; None: it does not
    batches: int = 0
    rows: int = 0
    input_rate: float | None = None  # inputRowsPerSecond
    lag_rows: float | None = None
    lag_s: float | None = None  # how far the newest event that was read is behind now
    target_s: float | None = None  # how late or old a result may be
    batch_s: float | None = None
    state_rows: int | None = None
    rows_dropped_by_watermark: int | None = None  # so far
    kept: int | None = None  # results that kept its target or trigger; None: it has neither
    broken: int | None = None  # and those that did not
    restarts: int = 0
    error: str | None = None  # first line
    accuracy: Accuracies | None = None  # of a query that may be shed
    why_two_batches: str | None = None  # why a window takes two batches, where one would do
    age_s: float | None = None  # of a table: since its last run that succeeded began
    every_s: float | None = None  # of a table: how old it may become
    failures: int = 0  # of a table: runs in a row


@dataclass(frozen=True, slots=True)
class FleetStatus:
    """All queries of a fleet, and how its controller is."""

    name: str
    policy: str
    gate: str  # which gate, and why
    controller: str  # running, off, …
    slots: int
    queries: tuple[QueryStatus, ...]

    def only(self, name: str) -> "FleetStatus":
        """Return the status of this query alone."""
        return replace(self, queries=tuple(q for q in self.queries if q.name == name))

    def columns(self) -> dict[str, list[str]]:
        """Return the table as text, by column, without columns that would say nothing."""
        queries = self.queries
        found = {
            "query": [q.name for q in queries],
            "state": [q.state for q in queries],
            "gate": [q.gate for q in queries],
            "priority": [f"{q.priority:g}" for q in queries],
            "waited s": [f"{q.waited_s:.1f}" for q in queries],
            "batches": [str(q.batches) for q in queries],
            "rows/s": [_text(q.input_rate, ".0f") for q in queries],
            "lag rows": [_text(q.lag_rows, ".0f") for q in queries],
            "lag s": [_text(q.lag_s, ".2f") for q in queries],
            "target s": [_text(q.target_s, "g") for q in queries],
            "batch s": [_text(q.batch_s, ".2f") for q in queries],
            "state rows": [_text(q.state_rows, "d") for q in queries],
            "in time": [in_time(q.kept, q.broken) for q in queries],
            "dropped late": [_text(q.rows_dropped_by_watermark, "d") for q in queries],
            **{name: [_accuracy(q, name) for q in queries] for name in SHOWN},
            "age s": [_text(q.age_s, ".0f") for q in queries],
            "every s": [_text(q.every_s, "g") for q in queries],
            "failures": [str(q.failures) if q.failures else "" for q in queries],
            "restarts": [str(q.restarts) if q.restarts else "" for q in queries],
            "waits": [q.waits or "" for q in queries],
            "error": [q.error or "" for q in queries],
        }
        optional = {
            "gate", "priority", "target s", "in time", "restarts", "waits", "error",
            *SHOWN, *_OF_TABLES,
        }  # fmt: skip
        return {
            name: cells
            for name, cells in found.items()
            if name not in optional or len(set(cells)) > 1 or (name != "gate" and _tells(cells))
        }

    def two_batches(self) -> list[str]:
        """Say which queries take two batches a window, and why."""
        return two_batches({query.name: query.why_two_batches for query in self.queries})

    @property
    def title(self) -> str:
        return (
            f"fleet {self.name}: policy {self.policy}, {self.slots} slots, "
            f"gate {self.gate}, controller {self.controller}"
        )

    def table(self) -> "TerminalTable":
        """Return a table that rich prints, as wide as the terminal."""
        from slackwater.report.terminal_table import TerminalTable  # rich: not everyone prints

        left, sentences = frozenset({"query", "state", "gate"}), frozenset({"waits", "error"})
        columns, notes = self.columns(), self.two_batches()
        return TerminalTable(self.title, columns, IMPORTANT, left, sentences, notes)

    def __str__(self) -> str:
        from io import StringIO

        from rich.console import Console

        console = Console(file=StringIO(), width=160)
        console.print(self.table())
        text: str = console.file.getvalue()  # type: ignore[attr-defined]
        return text.rstrip()

    def _repr_html_(self) -> str:
        columns = self.columns()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in zip(*columns.values(), strict=True)
        )
        title = escape(self.title)
        below = "".join(f"<p>{escape(line)}</p>" for line in self.two_batches())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<p>{title}</p>{table}{below}"


def two_batches(reasons: Mapping[str, str | None]) -> list[str]:
    """Say which queries take two batches a window, a line for each reason.

    Parameters
    ----------
    reasons
        By query; None: it takes one, or has no windows that come out once.

    Examples
    --------
    >>> two_batches({"a": "one_batch is off", "b": None, "c": "one_batch is off"})
    ['a, c: two batches a window, because one_batch is off']
    """
    found: dict[str, list[str]] = {}
    for name, reason in reasons.items():
        if reason is not None:
            found.setdefault(reason, []).append(name)
    return [f"{names(who)}: two batches a window, because {why}" for why, who in found.items()]


def in_time(kept: int | None, broken: int | None) -> str:
    """Say how many of a query's results were as fresh as was promised.

    >>> in_time(98, 2), in_time(0, 0), in_time(None, None)
    ('98 of 100', '', '')
    """
    results = (kept or 0) + (broken or 0)
    return f"{kept} of {results}" if results else ""


_OF_TABLES = ("age s", "every s", "failures")

# What people read; of a query that is active, its phase at the controller.
_TEXTS = {
    State.DECLARED: "starting",
    State.RESTING: "fresh",  # unless the timetable knows better, as it does of all below
    State.WAITING: "due",
    State.STARTING: "starting",
    State.PAUSED: "paused",
    State.RESTARTING: "failed",
    State.STOPPED: "stopped",
    State.FAILED: "failed",
}


def query_status(
    record: QueryRecord, known: QueryEntry | None, rows_left: int | None = None
) -> QueryStatus:
    """Make a row of the table of a record and what the controller knows of the query.

    Parameters
    ----------
    rows_left
        How many rows wait, as its sources say now; None: as its last batch said.
    """
    metrics = known.metrics if known else QueryMetrics()
    phase = "in sink" if known and known.in_sink else known.phase if known else "running"
    newest_s = metrics.max_event_s
    table = record.freshness()
    state = _state(record, table) or ("held" if phase == "waiting" else phase)
    return QueryStatus(
        name=record.name,
        state=state,
        gate=record.gate,
        priority=record.spec.priority,
        waited_s=known.waited_s if known else 0.0,
        waits=known.waits if known and state == "held" else None,
        batches=metrics.batches,
        rows=metrics.rows,
        input_rate=metrics.arrival_rate,
        lag_rows=metrics.backlog_rows if rows_left is None else rows_left,
        lag_s=max(0.0, RealClock().now() - newest_s) if newest_s is not None else None,
        target_s=record.spec.target_s,
        batch_s=metrics.batch_s,
        state_rows=metrics.state_rows,
        rows_dropped_by_watermark=metrics.rows_dropped_by_watermark,
        kept=known.kept if known else None,
        broken=known.broken if known else None,
        restarts=record.restarts,
        error=record.error,
        accuracy=record.accuracy(),
        why_two_batches=record.why_two_batches,
        age_s=table.age_s if table else None,
        every_s=table.every_s if table else None,
        failures=table.failures if table else 0,
    )


def _state(record: QueryRecord, table: Freshness | None) -> str | None:
    """Tell a query's state as far as the controller has no part in it."""
    if table is None or record.ended or record.state is State.PAUSED:
        return _TEXTS.get(record.state)
    return table.state


def note(record: QueryRecord) -> Note:
    """Return what the controller cannot know of a query, for those who watch."""
    accuracy = record.accuracy()
    again = record.state is State.RESTARTING
    table = record.freshness()
    return Note(
        gate=record.gate,
        state="starting" if again else _state(record, table),
        restarts=record.restarts,
        error=record.error,
        accuracy=None if accuracy is None else Accuracy(*accuracy),
        run_id=record.run if record.present else None,
        why_two_batches=record.why_two_batches,
        table=UNSET if table is None else copy_fields(table, TableNote),
    )


def _accuracy(query: QueryStatus, name: str) -> str:
    return "" if query.accuracy is None else _text(getattr(query.accuracy, name), ".0%")


def _tells(cells: list[str]) -> bool:
    return any(cell not in ("", "1") for cell in cells)


def _text(value: float | None, form: str) -> str:
    return "" if value is None else format(value, form)
