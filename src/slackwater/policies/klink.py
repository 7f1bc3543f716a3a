"""Klink: run the micro-batch that completes a window, when it can complete it."""

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray

from slackwater import progress
from slackwater.core.errors import UsageError
from slackwater.core.model import Admission, Figures, QueryState, Schedule, Snapshot
from slackwater.core.windows import Deadlines
from slackwater.policies import _memory
from slackwater.policies.base import Policy
from slackwater.progress.epochs import QueryEpochs
from slackwater.progress.slack import SlackTable

UNKNOWN_COST_S = 0.2  # of a micro-batch, until the query has shown it
UNSEEN_S = 0.05  # how long a query's last batch may be unknown before we go on without it
DRAIN_PAYS = 0.5  # of a batch's fixed cost: what waiting rows must cost for a drain to pay


class _Known:
    """What is remembered of one query between decisions, and its row in the slack table."""

    def __init__(self, row: int, epochs: QueryEpochs) -> None:
        self.row = row
        self.epochs = epochs
        self.seen: tuple[object, object] = (None, None)  # metrics and admission of the last look
        self.fixed_s = UNKNOWN_COST_S
        self.cost_s = UNKNOWN_COST_S  # of all batches that its next result still needs
        self.expected_s = math.inf  # when its sweeping watermark arrives, on average
        self.due_s = math.inf  # from when on its next batch finds something


class Klink(Policy):
    """Least slack first, on micro-batches.

    A window's result takes a *sweep* (the batch that reads past its end) and in append mode an
    *emit* (the batch after it). Emits go first: one batch ends the wait. Then sweeps whose
    watermark has arrived with enough likelihood, by least slack. A sweep that would find nothing
    waits. What is left of the slots may *drain* input early, if that pays and no sweep is near.
    Under memory pressure the queries that free most go first.

    Parameters
    ----------
    confidence
        f: of the interval in which the sweeping watermark is expected.
    history
        h: epochs that the estimate looks back on.
    memory_bound
        b: utilisation from which memory counts more than slack.
    estimator
        ``calibrated``, ``paper`` or ``linear``, see :mod:`slackwater.progress`.

    References
    ----------
    Farhat, Daudjee, Querzoni, *Klink: Progress-Aware Scheduling for Streaming Data Systems*,
    SIGMOD 2021.
    """

    name = "klink"
    manages_memory = True

    def __init__(
        self,
        seed: int = 0,
        *,
        confidence: float = 0.95,
        history: int = 400,
        memory_bound: float = 0.8,
        estimator: str = "calibrated",
    ) -> None:
        super().__init__(seed)
        for name, value in (("confidence", confidence), ("memory_bound", memory_bound)):
            if not 0 < value < 1:
                raise UsageError(f"klink: {name} must lie between 0 and 1, not {value}")
        self.confidence = confidence
        self.memory_bound = memory_bound
        self._estimator = partial(progress.load, estimator, history=history, confidence=confidence)
        self._estimator()  # a wrong name fails here
        self._known: dict[str, _Known] = {}
        self._free_rows: list[int] = []
        self._table = SlackTable()
        self._slacks: NDArray[np.float64] = np.empty(0)  # at the time of the last look
        self._now_s = 0.0
        self._pressure = _memory.Pressure(memory_bound)
        self._short_of_memory = False

    def decide(self, snapshot: Snapshot) -> Schedule:
        self._look(snapshot)
        schedule = super().decide(snapshot)
        return Schedule(schedule.admissions, self._next_due_s(snapshot))

    # -- what is known --------------------------------------------------------------------------

    def _look(self, snapshot: Snapshot) -> None:
        """Take in what has changed since the last look; then all slacks at once."""
        for query in snapshot.queries:
            known = self._known.get(query.name)
            if known is None or known.epochs.deadlines is not query.spec.deadlines:
                known = self._meet(query, known)
            # A trigger that found no data changes no metrics: it is known by its admission.
            if known.seen[0] is not query.metrics or known.seen[1] != query.admitted_s:
                self._learn(known, query)
        if len(self._known) > len(snapshot.queries):
            self._forget_all_but({query.name for query in snapshot.queries})
        self._now_s = snapshot.now_s
        self._slacks = self._table.slacks(snapshot.now_s)
        if self.manages_memory:
            least_s = float(self._slacks.min()) if len(self._slacks) else math.inf
            least_s = least_s if math.isfinite(least_s) else 0.0
            self._short_of_memory = self._pressure.update(snapshot.now_s, snapshot.memory, least_s)

    def _meet(self, query: QueryState, before: _Known | None) -> _Known:
        deadlines: Deadlines = query.spec.deadlines
        if before is not None and before.epochs.deadlines == deadlines:
            before.epochs.deadlines = deadlines  # told again, nothing new
            return before
        if before is not None:
            row = before.row
        else:
            row = self._free_rows.pop() if self._free_rows else len(self._known)
        known = _Known(row, QueryEpochs(deadlines, self._estimator))
        self._table.clear(row)
        self._known[query.name] = known
        return known

    def _learn(self, known: _Known, query: QueryState) -> None:
        metrics = query.metrics
        known.seen = metrics, query.admitted_s
        epochs = known.epochs
        epochs.update(metrics)
        known.fixed_s = metrics.batch_fixed_s or UNKNOWN_COST_S
        known.cost_s = _cost_s(known, query)
        mean_s = epochs.arrival.mean_s if epochs.arrival is not None else 0.0
        known.expected_s = epochs.base_s + mean_s
        last_try_s = max(metrics.batch_start_s or 0.0, query.admitted_s or 0.0)
        if epochs.stage == "emit":
            known.due_s = 0.0
            self._table.put_arrived(known.row, known.expected_s, known.cost_s)
        elif epochs.stage == "sweep":
            known.due_s = epochs.ready_s(known.fixed_s, last_try_s)
            # Of several inputs the earliest orders, the last decides when a sweep is due.
            firsts = [epochs.arrival, *epochs.first_arrivals]
            first = min(filter(None, firsts), key=lambda delay: delay.mean_s, default=None)
            self._table.put(known.row, epochs.base_s, first, known.cost_s)
        else:
            known.due_s = 0.0
            self._table.clear(known.row)

    def _forget_all_but(self, names: set[str]) -> None:
        for name in self._known.keys() - names:
            known = self._known.pop(name)
            self._table.clear(known.row)
            self._free_rows.append(known.row)

    # -- whom to admit --------------------------------------------------------------------------

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        ready = [q for q in waiting if self._is_ready(q, snapshot.now_s)]
        order = self._by_memory if self._short_of_memory else self._by_slack
        for query in sorted(ready, key=partial(order, snapshot)):
            yield self._admission(query, snapshot)
        if self._short_of_memory:
            return
        admitted = {query.name for query in ready}
        for query in waiting:
            if query.name not in admitted and self._drain_pays(query, snapshot):
                yield self._admission(query, snapshot, drain=True)
                return  # one at a time: two drains could hold up a sweep together

    def _is_ready(self, query: QueryState, now_s: float) -> bool:
        return self._known[query.name].due_s <= now_s and self._is_settled(query, now_s)

    def _is_settled(self, query: QueryState, now_s: float) -> bool:
        """Whether the last batch's progress is known; it may come a little after the arrival."""
        if query.admitted_s is None or query.waited_s(now_s) >= UNSEEN_S:
            return True
        return (query.metrics.batch_start_s or 0.0) >= query.admitted_s - 0.002

    def _slack_s(self, known: _Known) -> float:
        """A sweep that is due counts as arrived when it was expected, so that age tells."""
        slack_s = float(self._slacks[known.row])
        if known.epochs.stage == "sweep" and known.due_s <= self._now_s:
            slack_s = min(slack_s, known.expected_s - self._now_s - known.cost_s)
        return slack_s

    def _by_slack(self, snapshot: Snapshot, query: QueryState) -> tuple[float, ...]:
        known = self._known[query.name]
        stage = known.epochs.stage
        if stage == "free":  # no deadline: as long as it has waited
            return (2.0, -query.spec.priority, -query.waited_s(snapshot.now_s))
        return (0.0 if stage == "emit" else 1.0, -query.spec.priority, self._slack_s(known))

    def _by_memory(self, snapshot: Snapshot, query: QueryState) -> tuple[float, ...]:
        known = self._known[query.name]
        freed = _memory.freed_rows(query, known.epochs.stage == "emit", known.fixed_s)
        return (-freed, self._slack_s(known))

    def _drain_pays(self, query: QueryState, snapshot: Snapshot) -> bool:
        """Whether reading early shortens the sweep by enough, ends before it, and hurts nobody."""
        known = self._known[query.name]
        rows_s = _waiting_rows(query, snapshot.now_s) * (query.metrics.batch_per_row_s or 0.0)
        if known.epochs.stage != "sweep" or rows_s < DRAIN_PAYS * known.fixed_s:
            return False
        end_s = snapshot.now_s + known.fixed_s + 2 * rows_s
        if snapshot.running or end_s > known.due_s:
            return False
        return all(other.due_s > end_s for other in self._known.values())

    def _next_due_s(self, snapshot: Snapshot) -> float | None:
        """When the next of those that wait is due; those that could go now need a free slot."""
        now_s = snapshot.now_s
        due = [self._known[query.name].due_s for query in snapshot.waiting]
        later = [due_s for due_s in due if due_s > now_s]
        unsettled = [
            query.since_s + UNSEEN_S
            for query in snapshot.waiting
            if not self._is_settled(query, now_s)
        ]
        return min(later + unsettled, default=None)

    # -- what is said of it ---------------------------------------------------------------------

    def _admission(self, query: QueryState, snapshot: Snapshot, drain: bool = False) -> Admission:
        known = self._known[query.name]
        epochs = known.epochs
        stage = "drain" if drain else epochs.stage
        figures = self._figures(known, stage)
        limit = self._row_limit(query, snapshot)
        if self._short_of_memory:
            return Admission(query.name, f"{stage}: frees memory", limit, figures)
        if figures.slack_s is None:
            reason = "first batch" if stage == "learn" else "no deadline, a slot is free"
        else:
            reason = f"{stage}, slack {figures.slack_s:+.2f} s"
        return Admission(query.name, reason, limit, figures)

    def _row_limit(self, query: QueryState, snapshot: Snapshot) -> int | None:
        """An emit needs no input; others only where they would take more memory than there is."""
        if self._known[query.name].epochs.stage == "emit":
            return 0
        if not self.manages_memory:
            return None
        if query.metrics.batches == 0:
            return _memory.FIRST_ROWS
        fit = _memory.rows_that_fit(
            query.metrics, snapshot.memory, self.memory_bound, snapshot.slots
        )
        return fit if _waiting_rows(query, snapshot.now_s) > fit else None

    def _figures(self, known: _Known, stage: str) -> Figures:
        epochs = known.epochs
        slack_s = self._slack_s(known)
        if not math.isfinite(slack_s):
            return Figures(stage, cost_s=known.cost_s)
        arrival = epochs.arrival
        low_s, high_s = arrival.interval(self.confidence) if arrival else (None, None)
        return Figures(
            stage,
            slack_s=slack_s,
            window_end_s=epochs.window_end_s,
            arrival_s=known.expected_s if arrival else None,
            arrival_low_s=epochs.base_s + low_s if low_s is not None else None,
            arrival_high_s=epochs.base_s + high_s if high_s is not None else None,
            cost_s=known.cost_s,
        )


def _cost_s(known: _Known, query: QueryState) -> float:
    """Of all batches that its next result still needs."""
    metrics = query.metrics
    emit_s = metrics.batch_empty_s or known.fixed_s
    if known.epochs.stage == "emit":
        return emit_s
    sweep_s = known.fixed_s + (metrics.backlog_rows or 0.0) * (metrics.batch_per_row_s or 0.0)
    return sweep_s + emit_s if known.epochs.deadlines.output_mode == "append" else sweep_s


def _waiting_rows(query: QueryState, now_s: float) -> float:
    """Arrived and not read: what the last batch left, and what has come since."""
    metrics = query.metrics
    since_s = now_s - metrics.batch_start_s if metrics.batch_start_s is not None else 0.0
    return (metrics.backlog_rows or 0.0) + max(0.0, since_s) * (metrics.arrival_rate or 0.0)
