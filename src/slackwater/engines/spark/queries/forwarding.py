"""Queries that are parts of an application: what they tell the parts next to them, and hear.

A query that writes a log has done its share of a window when it has read past its end. It is told
which windows its readers have and what a result costs them; they are told how far it is.
"""

import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from slackwater.core.errors import SlackwaterError
from slackwater.core.model import Outlook, QuerySpec, Sweep
from slackwater.core.windows import Deadlines, Window
from slackwater.engines.spark.control.client import Known
from slackwater.engines.spark.progress import (
    batch_end_s,
    newest_event_s,
    ran_a_batch,
    read_progress,
)
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.record import QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.specs import max_wait_s
from slackwater.ipc.messages import Told, read_windows
from slackwater.ipc.questions import QueryEntry
from slackwater.progress.forwarding import SweepsSeen, deadlines_upstream, outlook

MOST = 100  # frontiers that are kept for somebody who does not ask


@dataclass
class _Part:
    """One query."""

    frontiers: list[tuple[float, float]] = field(default_factory=list)  # since it last reported
    windows: dict[str, tuple[tuple[Window, ...], float]] = field(default_factory=dict)  # by reader
    costs: dict[str, Outlook] = field(default_factory=dict)
    own: Deadlines = field(default_factory=Deadlines)  # as discovery found them
    merged: Deadlines | None = None  # with those of its readers
    sweeps: SweepsSeen = field(default_factory=SweepsSeen)


class FleetParts:
    """All queries of a fleet.

    Parameters
    ----------
    ask
        What the controller knows of each query, and whether gates are open.
    """

    def __init__(
        self, registry: Registry, agent: Agent, ask: Callable[[], tuple[Known, bool]]
    ) -> None:
        self._registry = registry
        self._agent = agent
        self._ask = ask
        self._lock = threading.Lock()
        self._parts: dict[str, _Part] = {}

    def take(self, name: str, progress: dict[str, Any]) -> None:
        """Take in one progress event: from its end on readers can see what the batch wrote."""
        if not ran_a_batch(progress):
            return
        read = read_progress(progress)
        newest_s = newest_event_s(read)
        if newest_s is not None:
            with self._lock:
                frontiers = self._part(name).frontiers
                frontiers.append((newest_s, batch_end_s(read)))
                del frontiers[:-MOST]

    def reports(self) -> dict[str, dict[str, Any]]:
        """Return, by query, its windows, what a result costs from there on, how far it has come."""
        try:
            known, _ = self._ask()
        except SlackwaterError:
            return {}  # without a controller nothing is scheduled either
        return {name: self._report(name, entry) for name, entry in known.items()}

    def _report(self, name: str, entry: QueryEntry) -> dict[str, Any]:
        record = self._registry.get(name)
        deadlines = record.spec.deadlines if record is not None else Deadlines()
        with self._lock:
            part = self._part(name)
            frontiers, part.frontiers = part.frontiers, []
        return {
            "windows": [asdict(window) for window in deadlines.closing],
            "delay_s": _delay_s(deadlines),
            "cost": list(outlook(entry.metrics, emits=deadlines.output_mode == "append")),
            "frontiers": frontiers,
        }

    def hear(self, name: str, by: str, message: dict[str, Any]) -> None:
        """Take in what the query ``by``, next to this one, has reported."""
        record = self._registry.get(name)
        if record is None:
            return
        with self._lock:
            part = self._part(name)
            if "frontiers" in message:
                self._hear_progress(record.spec, part, message["frontiers"])
            if "windows" in message:
                part.windows[by] = read_windows(message["windows"]), float(message["delay_s"])
                part.costs[by] = Outlook(*map(float, message["cost"]))
                self._hear_outlook(record, part)

    def _hear_progress(
        self, spec: QuerySpec, part: _Part, frontiers: list[tuple[float, float]]
    ) -> None:
        deadlines = spec.deadlines
        for sweep in part.sweeps.take(frontiers, deadlines.closing, _delay_s(deadlines)):
            self._agent.link.send(Told(spec.name, sweep=Sweep(*sweep)))

    def _hear_outlook(self, record: QueryRecord, part: _Part) -> None:
        """Take in what readers need: all of their windows, and the largest cost of a result."""
        costs = part.costs.values()
        beyond = Outlook(max(c.fixed_s for c in costs), max(c.per_row_s for c in costs))
        self._registry.revise(
            record.name, lambda spec: _with_readers(spec, part, record.stated_wait_s)
        )
        self._agent.link.send(Told(record.name, beyond=beyond))

    def _part(self, name: str) -> _Part:
        return self._parts.setdefault(name, _Part())


def _with_readers(spec: QuerySpec, part: _Part, stated_wait_s: float | None) -> QuerySpec:
    """Add the windows of its readers to a query's own."""
    if spec.deadlines != part.merged:  # it was started, or found, since
        part.own = spec.deadlines
    each = [
        deadlines_upstream(part.own, delay, windows) for windows, delay in part.windows.values()
    ]
    part.merged = replace(
        each[0], windows=tuple(dict.fromkeys(w for found in each for w in found.windows))
    )
    if part.merged == spec.deadlines:
        return spec
    wait_s = max_wait_s(stated_wait_s, part.merged)
    return replace(spec, deadlines=part.merged, max_wait_s=wait_s)


def _delay_s(deadlines: Deadlines) -> float:
    delays = (stream.watermark_delay_s or 0.0 for stream in deadlines.inputs)
    return max(delays, default=0.0)
