"""Klink: run the micro-batch that completes a window, when it can complete it."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, count
from operator import is_not

import numpy as np
from numpy.typing import NDArray

from slackwater import progress
from slackwater.core.errors import UsageError
from slackwater.core.model import Admission, Figures, QueryState, Schedule, Snapshot
from slackwater.core.windows import Deadlines
from slackwater.policies import _memory
from slackwater.policies.base import Policy, overdue_s
from slackwater.progress.base import SweepDelay
from slackwater.progress.epochs import RETRY_S, QueryEpochs
from slackwater.progress.slack import SlackTable, expected_slack

UNKNOWN_COST_S = 0.2  # of a micro-batch, until the query has shown it
UNSEEN_S = 0.05  # how long a query's last batch may be unknown before we go on without it
DRAIN_PAYS = 0.5  # of a batch's fixed cost: what waiting rows must cost for a drain to pay

EMIT, SWEEP, OTHER = range(3)  # in this order they are served

_ROW = np.dtype(
    [
        ("waits", np.bool_),  # at the gate
        ("overdue", np.float64),  # when it is served whatever its slack
        ("rank", np.int8),  # EMIT, SWEEP or OTHER
        ("priority", np.float64),
        ("since", np.float64),  # at the gate
        ("cost", np.float64),  # of all batches that the next result still needs
        ("growth", np.float64),  # of that in a second, where input comes into memory by itself
        ("told", np.float64),  # when the cost was that
        ("expected", np.float64),  # when the sweeping watermark arrives, on average
        ("due", np.float64),  # from when on the next batch finds something
        ("drain", np.float64),  # from when on it is worth while to read early
    ]
)
_NOBODY = np.array(
    (False, math.inf, OTHER, 1.0, 0.0, UNKNOWN_COST_S, 0.0, 0.0, math.inf, math.inf, math.inf),
    _ROW,
)


class _Known:
    """What is remembered of one query between decisions, and its row in the slack table."""

    def __init__(self, row: int, epochs: QueryEpochs) -> None:
        self.row = row
        self.epochs = epochs
        self.seen: tuple[object, object] = (None, None)  # metrics and admission of the last look
        self.first: SweepDelay | None = None  # the earliest of its inputs'
        self.fixed_s = UNKNOWN_COST_S
        self.batches = 0  # that ran until the last look
        self.fruitless = 0  # admissions in a row that ran no batch


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
        estimator: str = progress.DEFAULT,
    ) -> None:
        super().__init__(seed)
        for name, value in (("confidence", confidence), ("memory_bound", memory_bound)):
            if not 0 < value < 1:
                raise UsageError(f"klink: {name} must lie between 0 and 1, not {value}")
        self.memory_bound = memory_bound
        self._estimator = partial(progress.load, estimator, history=history, confidence=confidence)
        self._estimator()  # a wrong name fails here
        self._known: dict[str, _Known] = {}
        self._free_rows: list[int] = []
        self._table = SlackTable()
        self._of = np.empty(0, _ROW)  # by row of the table
        self._queries: tuple[QueryState, ...] = ()  # of the last look
        self._rows = np.empty(0, np.intp)  # theirs, in the same order
        self._now = self._of  # what is known of them, in the same order
        self._now_s = 0.0
        self._pressure = _memory.Pressure(memory_bound)
        self._short_of_memory = False

    def decide(self, snapshot: Snapshot) -> Schedule:
        self._look(snapshot)
        schedule = super().decide(snapshot)
        wake_s = min(self._next_due_s(snapshot), schedule.wake_at_s or math.inf)
        return Schedule(schedule.admissions, wake_s if math.isfinite(wake_s) else None)

    # -- what is known --------------------------------------------------------------------------

    def _look(self, snapshot: Snapshot) -> None:
        """Take in what has changed since the last look: few of perhaps many."""
        queries, seen = snapshot.queries, self._queries
        same_order = len(queries) == len(seen)
        if same_order:
            # What has not changed is the same object; of ten thousand that is quick to see.
            places = list(compress(count(), map(is_not, queries, seen)))
            same_order = all(queries[place].name == seen[place].name for place in places)
        for query in (queries[place] for place in places) if same_order else queries:
            self._look_at(query)
        if not same_order:
            self._forget_all_but({query.name for query in queries})
            self._rows = np.array([self._known[q.name].row for q in queries], np.intp)
        self._queries, self._now = queries, self._of[self._rows]
        self._now_s = snapshot.now_s
        if self.manages_memory:
            self._short_of_memory = self._pressure.update(
                snapshot.now_s, snapshot.memory, self._least_slack_s
            )

    def _look_at(self, query: QueryState) -> None:
        known = self._known.get(query.name)
        if known is None or known.epochs.deadlines is not query.spec.deadlines:
            known = self._meet(query, known)
        # A trigger that found no data changes no metrics: it is known by its admission.
        if known.seen[0] is not query.metrics or (
            query.phase == "waiting" and known.seen[1] != query.admitted_s
        ):
            self._learn(known, query)
        of = self._of[known.row]
        of["waits"], of["overdue"] = query.phase == "waiting", overdue_s(query)
        of["priority"], of["since"] = query.spec.priority, query.since_s

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
        self._reserve(row + 1)
        self._known[query.name] = known
        return known

    def _reserve(self, rows: int) -> None:
        if rows > len(self._of):
            more = np.full(max(64, rows), _NOBODY, _ROW)
            self._of = np.concatenate((self._of, more))

    def _learn(self, known: _Known, query: QueryState) -> None:
        metrics = query.metrics
        if known.batches != metrics.batches:  # may be told after the arrival, too
            known.fruitless = 0
        elif known.seen[1] != query.admitted_s:
            known.fruitless += 1
        known.seen, known.batches = (metrics, query.admitted_s), metrics.batches
        epochs = known.epochs
        epochs.update(metrics)
        known.fixed_s = max(metrics.batch_fixed_s or UNKNOWN_COST_S, metrics.batch_empty_s or 0.0)
        mean_s = epochs.arrival.mean_s if epochs.arrival is not None else 0.0
        cost_s, expected_s = _cost_s(known, query), epochs.base_s + mean_s
        rank, due_s = OTHER, _again_s(known, query)
        if epochs.stage == "emit":
            rank = EMIT
            self._table.put_arrived(known.row, expected_s, cost_s)
        elif epochs.stage == "sweep":
            last_try_s = epochs.last_read_s
            if known.fruitless and query.admitted_s is not None:
                last_try_s = max(last_try_s, query.admitted_s)
            rank, due_s = SWEEP, epochs.ready_s(metrics.batch_s or known.fixed_s, last_try_s)
            # Of several inputs the earliest orders, the last decides when a sweep is due.
            firsts = [epochs.arrival, *epochs.first_arrivals]
            known.first = min(filter(None, firsts), key=lambda delay: delay.mean_s, default=None)
            self._table.put(known.row, epochs.base_s, known.first, cost_s)
        else:
            self._table.clear(known.row)
        of = self._of[known.row]
        of["rank"], of["cost"], of["expected"], of["due"] = rank, cost_s, expected_s, due_s
        of["drain"] = _drain_s(known, query, due_s)
        if metrics.buffered_rows is not None:
            of["growth"] = (metrics.arrival_rate or 0.0) * (metrics.batch_per_row_s or 0.0)
            of["told"] = metrics.batch_start_s or 0.0

    def _forget_all_but(self, names: set[str]) -> None:
        for name in self._known.keys() - names:
            known = self._known.pop(name)
            self._table.clear(known.row)
            self._of[known.row] = _NOBODY
            self._free_rows.append(known.row)

    # -- whom to admit --------------------------------------------------------------------------

    def _find_overdue(self, snapshot: Snapshot) -> tuple[list[QueryState], float]:
        waits, at_s = self._now["waits"], self._now["overdue"]
        late = at_s <= snapshot.now_s
        (places,) = (waits & late).nonzero()
        next_s = float(at_s.min(where=waits & ~late, initial=math.inf))
        return [snapshot.queries[place] for place in places.tolist()], next_s

    def _overdue(self, query: QueryState, snapshot: Snapshot) -> Admission:
        known = self._known[query.name]
        return replace(
            super()._overdue(query, snapshot),
            row_limit=self._row_limit(query, snapshot),
            figures=self._figures(known, known.epochs.stage),
        )

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        """Works on vectors: of ten thousand queries that wait only a few are looked at."""
        now_s, queries, of = snapshot.now_s, snapshot.queries, self._now
        waits = of["waits"] & (of["overdue"] > now_s)  # the overdue have their slots
        # Where work can be interrupted, starting early costs nothing.
        due = waits if snapshot.cycle_s is not None else waits & (of["due"] <= now_s)
        (ready,) = due.nonzero()
        if len(ready) > 1:
            ready = ready[
                self._by_memory(ready) if self._short_of_memory else self._by_slack(ready)
            ]
        for place in ready.tolist():
            if self._is_settled(queries[place], now_s):
                yield self._admission(queries[place], snapshot)
        if self._short_of_memory or snapshot.running or snapshot.cycle_s is not None:
            return
        (early,) = (waits & (of["due"] > now_s) & (of["drain"] <= now_s)).nonzero()
        sweeps_s = of["due"][of["rank"] == SWEEP]
        first_sweep_s = float(sweeps_s.min(initial=math.inf))
        for place in early.tolist():
            if self._drained_s(queries[place], now_s) < first_sweep_s:
                yield self._admission(queries[place], snapshot, drain=True)
                return  # one at a time: two drains could hold up a sweep together

    def _is_settled(self, query: QueryState, now_s: float) -> bool:
        """Whether the last batch's progress is known; it may come a little after the arrival."""
        if query.admitted_s is None or query.waited_s(now_s) >= UNSEEN_S:
            return True
        return (query.metrics.batch_start_s or 0.0) >= query.admitted_s - 0.002

    def _least_slack_s(self) -> float:
        slacks = self._table.slacks(self._now_s)
        least_s = float(slacks.min()) if len(slacks) else math.inf
        return least_s if math.isfinite(least_s) else 0.0

    def _slack_now(self, rows: NDArray[np.intp]) -> NDArray[np.float64]:
        """A sweep that is due counts as arrived when it was expected: age tells."""
        of = self._of[rows]
        slacks = self._table.slacks(self._now_s, rows)
        aged = of["expected"] - self._now_s - of["cost"]
        due = (of["rank"] == SWEEP) & (of["due"] <= self._now_s)
        grown = of["growth"] * (self._now_s - of["told"])
        return np.where(due, np.minimum(slacks, aged), slacks) - grown

    def _slack_of(self, known: _Known) -> float:
        """The same for one query, without the vectors."""
        of = self._of[known.row]
        grown_s = float(of["growth"]) * (self._now_s - float(of["told"]))
        rank, cost_s, expected_s = int(of["rank"]), float(of["cost"]), float(of["expected"])
        cost_s += grown_s
        if rank == OTHER:
            return math.inf
        aged_s = expected_s - self._now_s - cost_s
        if rank == EMIT:
            return aged_s
        slack_s = expected_slack(self._now_s, known.epochs.base_s, known.first, cost_s)
        return min(slack_s, aged_s) if of["due"] <= self._now_s else slack_s

    def _by_slack(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Emits, then sweeps, then queries without a deadline; in each the important first."""
        rows = self._rows[places]
        slacks, since_s = self._slack_now(rows), self._of["since"][rows]
        urgency = np.where(np.isfinite(slacks), slacks, since_s)
        return np.lexsort((since_s, urgency, -self._of["priority"][rows], self._of["rank"][rows]))

    def _by_memory(self, places: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those that free most first, ties by least slack."""
        rows = self._rows[places]
        emits = self._of["rank"][rows] == EMIT
        freed = [
            _memory.freed_rows(self._queries[place], emit)
            for place, emit in zip(places.tolist(), emits.tolist(), strict=True)
        ]
        return np.lexsort((self._slack_now(rows), -np.asarray(freed)))

    def _drained_s(self, query: QueryState, now_s: float) -> float:
        """When a drain that begins now would end; it must hold up no sweep, nor its own."""
        rows_s = _waiting_rows(query, now_s) * (query.metrics.batch_per_row_s or 0.0)
        return now_s + self._known[query.name].fixed_s + 2 * rows_s

    def _next_due_s(self, snapshot: Snapshot) -> float:
        """When the next of those that wait is due; those that could go now need a free slot."""
        now_s, of = snapshot.now_s, self._now
        times_s = np.concatenate((of["due"], of["drain"]))
        next_s = float(times_s.min(where=times_s > now_s, initial=math.inf))
        (new,) = (of["waits"] & (of["since"] + UNSEEN_S > now_s)).nonzero()
        if not all(self._is_settled(snapshot.queries[place], now_s) for place in new.tolist()):
            next_s = min(next_s, now_s + UNSEEN_S)
        return next_s

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
        """An emit needs no input, unless it comes so late that it can sweep the next window too.
        Others are limited only where they would take more memory than there is."""
        known = self._known[query.name]
        late = known.epochs.following_s <= snapshot.now_s
        if known.epochs.stage == "emit" and not known.fruitless and not late:
            return 0
        if not self.manages_memory:
            return None
        if query.metrics.batches == 0:
            return _memory.FIRST_ROWS
        fit = _memory.rows_that_fit(
            query.metrics,
            snapshot.memory,
            self.memory_bound,
            snapshot.slots,
            min(known.epochs.period_s, query.spec.max_wait_s),
        )
        return fit if _waiting_rows(query, snapshot.now_s) > fit else None

    def _figures(self, known: _Known, stage: str) -> Figures:
        epochs = known.epochs
        slack_s = self._slack_of(known)
        cost_s = float(self._of["cost"][known.row])
        if not math.isfinite(slack_s):
            return Figures(stage, cost_s=cost_s)
        arrival = epochs.arrival
        low_s, high_s = epochs.interval_s
        return Figures(
            stage,
            slack_s=slack_s,
            window_end_s=epochs.window_end_s,
            arrival_s=float(self._of["expected"][known.row]) if arrival else None,
            arrival_low_s=epochs.base_s + low_s if arrival else None,
            arrival_high_s=epochs.base_s + high_s if arrival else None,
            cost_s=cost_s,
        )


def _again_s(known: _Known, query: QueryState) -> float:
    """When to try again; a query that finds nothing to do is asked less and less often."""
    if not known.fruitless:
        return 0.0
    return (query.admitted_s or 0.0) + RETRY_S * 2.0 ** min(known.fruitless, 4)


def _cost_s(known: _Known, query: QueryState) -> float:
    """Of all batches that its next result still needs."""
    metrics = query.metrics
    emit_s = metrics.batch_empty_s or known.fixed_s
    if known.epochs.stage == "emit":  # what is in memory comes before its watermark
        return emit_s + (metrics.buffered_rows or 0.0) * (metrics.batch_per_row_s or 0.0)
    sweep_s = known.fixed_s + (metrics.backlog_rows or 0.0) * (metrics.batch_per_row_s or 0.0)
    return sweep_s + emit_s if known.epochs.deadlines.output_mode == "append" else sweep_s


def _drain_s(known: _Known, query: QueryState, due_s: float) -> float:
    """When enough rows wait that reading them early shortens the sweep, if that is before it."""
    metrics = query.metrics
    if known.epochs.stage != "sweep" or not metrics.batch_per_row_s:
        return math.inf
    rows = DRAIN_PAYS * known.fixed_s / metrics.batch_per_row_s - (metrics.backlog_rows or 0.0)
    if rows <= 0:
        from_s = metrics.batch_start_s or 0.0
    elif metrics.arrival_rate:
        from_s = (metrics.batch_start_s or 0.0) + rows / metrics.arrival_rate
    else:
        return math.inf
    return from_s if from_s + (1 + 2 * DRAIN_PAYS) * known.fixed_s <= due_s else math.inf


def _waiting_rows(query: QueryState, now_s: float) -> float:
    """Arrived and not read: what the last batch left, and what has come since."""
    metrics = query.metrics
    since_s = now_s - metrics.batch_start_s if metrics.batch_start_s is not None else 0.0
    return (metrics.backlog_rows or 0.0) + max(0.0, since_s) * (metrics.arrival_rate or 0.0)
