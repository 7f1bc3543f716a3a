"""Queries as Klink sees them, told batch by batch: what a fleet of one slot or more would show."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise

from slackwater.core import (
    Deadlines,
    InputStream,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Snapshot,
    Window,
)
from slackwater.policies import Policy

START = 10_000.0
STEP_S = 0.02


def windows(slide_s: float, output_mode: str = "append", delay_s: float = 0.3) -> Deadlines:
    stream = InputStream("feed", "t", watermark_delay_s=delay_s)
    return Deadlines((Window("tumbling", slide_s, slide_s),), (stream,), output_mode)


@dataclass
class Scripted:
    """One query: its batches take ``batch_s`` and read what has arrived.

    Parameters
    ----------
    arrives
        Whether rows have arrived between two moments.
    frontier_s
        The newest event time that has arrived by a moment.
    """

    spec: QuerySpec
    batch_s: float = 0.2
    arrives: Callable[[float, float], bool] = lambda since_s, now_s: True
    frontier_s: Callable[[float], float] = lambda now_s: now_s - 0.02
    rate: float = 1000.0  # rows that arrive in a second
    limit: float = math.inf  # rows of a batch
    sleeps: bool = False  # its batches wait for their sink after a second and a half
    tells: bool = False  # once a look has found nothing, its source is asked what has come
    newest: bool = False  # its batches tell the newest event time that they read
    told: dict[str, float] = field(default_factory=dict)  # more metrics
    begun_s: list[float] = field(default_factory=list)  # batches
    looks_s: list[float] = field(default_factory=list)  # admissions
    state: QueryState = field(init=False)
    ends_s: float | None = None
    reads: bool = False  # whether the batch that runs has rows
    _looked_s: float = START - 60.0
    _found: bool = True  # something, at the last look

    def __post_init__(self) -> None:
        self.state = QueryState(self.spec, "waiting", START)

    def admit(self, now_s: float) -> None:
        self.looks_s.append(now_s)
        metrics = self.state.metrics
        emits = (metrics.next_watermark_s or 0.0) > (metrics.watermark_s or 0.0)
        self.reads = self.arrives(self._looked_s, now_s)
        found = self._found = emits or self.reads
        self._looked_s = now_s
        self.ends_s = now_s + (self.batch_s if found else 0.01)
        if found:
            self.begun_s.append(now_s)
        admissions = self.state.admissions + 1
        self.state = replace(
            self.state,
            phase="running",
            since_s=now_s,
            admitted_s=now_s,
            admissions=admissions,
            has_input=None,
        )

    def ask(self, now_s: float) -> None:
        """Ask its source, which knows what the last look did not see."""
        if not self.tells or self._found or self.state.phase != "waiting":
            return
        came = self.arrives(self._looked_s, now_s)
        if self.state.has_input is not came:
            self.state = replace(self.state, has_input=came)

    def end(self, now_s: float) -> None:
        metrics = self.state.metrics
        if self.begun_s and self.begun_s[-1] == self.state.admitted_s:
            metrics = self._after_batch(metrics)
        self.ends_s = None
        self.state = replace(
            self.state, phase="waiting", since_s=now_s, metrics=metrics, in_sink=False
        )

    def _after_batch(self, before: QueryMetrics) -> QueryMetrics:
        start_s = self.begun_s[-1]
        rows = min(self.limit, self.rate * (start_s - (before.batch_start_s or START - 1.0)))
        rows = rows if self.reads else 0.0
        delays = [i.watermark_delay_s for i in self.spec.deadlines.inputs]
        known: dict[str, object] = {
            "batches": before.batches + 1,
            "rows": before.rows + round(rows),
            "batch_fixed_s": self.batch_s,
            "batch_s": self.batch_s,
            "batch_per_row_s": 0.0,
            "batch_start_s": start_s,
        }
        if self.newest:
            known["max_event_s"] = self.frontier_s(start_s)
        if delays:
            mark_s = self.frontier_s(start_s) - max(d or 0.0 for d in delays)
            mark_s = max(mark_s if self.reads else 0.0, before.next_watermark_s or 0.0)
            known |= {"watermark_s": before.next_watermark_s, "next_watermark_s": mark_s}
        return QueryMetrics(**(known | self.told))  # type: ignore[arg-type]

    def gaps_s(self, after_s: float = START + 10) -> list[float]:
        """Return the times between batches."""
        begun = [at_s for at_s in self.begun_s if at_s >= after_s]
        return [b - a for a, b in pairwise(begun)]


def run(policy: Policy, queries: list[Scripted], seconds: float, slots: int = 3) -> None:
    """Turn a policy in small steps of time."""
    steps = round(seconds / STEP_S)
    for step in range(steps):
        now_s = START + step * STEP_S
        for query in queries:
            if query.ends_s is not None and query.ends_s <= now_s:
                query.end(now_s)
            elif query.sleeps and query.ends_s is not None and now_s > query.looks_s[-1] + 1.5:
                query.state = replace(query.state, in_sink=True)
            query.ask(now_s)
        schedule = policy.decide(Snapshot(now_s, slots, tuple(q.state for q in queries)))
        for admission in schedule.admissions:
            next(q for q in queries if q.spec.name == admission.query).admit(now_s)
