"""Klink in the published order: run the batch that completes a window, when it can."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import compress, count
from operator import is_not

from slackwater import progress
from slackwater.core.errors import UsageError
from slackwater.core.model import (
    Admission,
    Figures,
    Prospect,
    QueryState,
    Schedule,
    Snapshot,
    Work,
)
from slackwater.core.windows import Deadlines
from slackwater.policies import _memory
from slackwater.policies._due_queries import (
    MANY,
    DueQueries,
    Entry,
    LoopedDueQueries,
    VectorDueQueries,
)
from slackwater.policies._known import (
    EMIT,
    OTHER,
    SWEEP,
    UNKNOWN_COST_S,
    Known,
    again_s,
    cost_s,
    drain_s,
    drained_fixed_s,
    waiting_rows,
)
from slackwater.policies.base import Policy, overdue_s
from slackwater.progress.epochs import QueryEpochs
from slackwater.progress.forwarding import row_cost_s
from slackwater.progress.slack import SlackTable, expected_slack

UNSEEN_S = 0.05  # how long a query's last batch may be unknown before we go on without it
EARLY_S = 0.02  # what it costs to ask too early for a batch that begins only with its watermark
IDLE_RETRY_S = 1.0  # between two looks at inputs of which one may have fallen silent
IDLE_ASK_S = 0.1  # where a look at silence runs no batch: nothing is there, or its source is asked
IDLE_AFTER_S = 0.02  # until a silence has been seen to last for so long as it must


class KlinkPaper(Policy):
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

    name = "klink-paper"
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
        self._known: dict[str, Known] = {}
        self._due_queries: DueQueries = LoopedDueQueries()
        self._table = SlackTable()  # where work can be interrupted; else urgency says as much
        self._interruptible = False
        self._queries: tuple[QueryState, ...] = ()  # of the last look
        self._outdated = False  # whether all are to be looked at anew
        self._now_s = 0.0
        self._pressure = _memory.Pressure(memory_bound)
        self._short_of_memory = False

    def decide(self, snapshot: Snapshot) -> Schedule:
        self._measure_load(snapshot)
        self._look(snapshot)
        if snapshot.free_slots == 0:
            return Schedule(hold_s=self._load_hold_s)  # when one becomes free, we are asked again
        now_s = snapshot.now_s
        next_s = self._due_queries.next_s()
        if self._interruptible or next_s <= now_s:
            admissions = super().decide(snapshot).admissions
            next_s = self._due_queries.next_s(after_s=now_s)
        else:
            admissions = ()
        return Schedule(admissions, next_s if math.isfinite(next_s) else None, self._load_hold_s)

    def held_up(self, snapshot: Snapshot) -> dict[str, float]:
        now_s, found = snapshot.now_s, {}
        for place in self._due_queries.due(now_s) + self._due_queries.overdue(now_s):
            query = self._queries[place]
            due_s = min(self._known[query.name].due_s, now_s)
            found[query.name] = max(query.since_s, due_s)
        return found

    def outlook(self, now_s: float) -> dict[str, Figures]:
        self._now_s = now_s
        known = self._known.items()
        return {name: self._figures(one, one.epochs.stage) for name, one in known}

    def prospects(self, now_s: float) -> dict[str, Prospect]:
        first = [*self._due_queries.overdue(now_s), *self._ready(now_s)]
        ahead = {place: number for number, place in enumerate(first)}
        waiting = ((place, q) for place, q in enumerate(self._queries) if q.phase == "waiting")
        return {q.name: self._prospect(q, ahead.get(place)) for place, q in waiting}

    # -- what is known --------------------------------------------------------------------------

    def _look(self, snapshot: Snapshot) -> None:
        """Take in what has changed since the last look: few of perhaps many."""
        queries, seen = snapshot.queries, self._queries
        self._now_s, self._interruptible = snapshot.now_s, snapshot.cycle_s is not None
        many = self._interruptible or len(queries) >= MANY
        due_queries = VectorDueQueries if many else LoopedDueQueries
        # What has not changed is the same object; of ten thousand that is quick to see.
        places = list(compress(count(), map(is_not, queries, seen)))
        others = len(queries) < len(seen) or any(queries[p].name != seen[p].name for p in places)
        if others or self._outdated or type(self._due_queries) is not due_queries:
            self._begin_anew(queries, due_queries())
            self._outdated = False
            places = list(range(len(queries)))
        else:
            places += range(len(seen), len(queries))
        for place in places:
            self._look_at(place, queries[place])
        self._queries = queries
        if self.manages_memory:
            self._short_of_memory = self._pressure.update(snapshot.now_s, snapshot.memory)

    def _begin_anew(self, queries: Sequence[QueryState], due_queries: DueQueries) -> None:
        """Begin anew: some went, their order is another, or few have become many.

        Everyone's place is new then.
        """
        known = {q.name: self._known[q.name] for q in queries if q.name in self._known}
        self._known, self._due_queries, self._table = known, due_queries, SlackTable()
        for one in known.values():
            one.seen = (None, one.seen[1])  # so that its row of the table is written

    def _look_at(self, place: int, query: QueryState) -> None:
        known = self._known.get(query.name)
        if known is None or known.epochs.deadlines is not query.spec.deadlines:
            known = self._meet(place, query, known)
        known.place = place
        # A trigger that found no data changes no metrics: it is known by its admission.
        waits = query.phase == "waiting"
        if known.seen[0] is not query.metrics or (waits and known.seen[1] != query.admitted_s):
            self._learn(known, query)
        # What the last batch did may be told a little after the arrival.
        settled = query.admitted_s is None or (
            (query.metrics.batch_start_s or 0.0) >= query.admitted_s - 0.002
        )
        from_s = -math.inf if settled else query.since_s + UNSEEN_S
        self._due_queries.write(place, self._entry(known, query, from_s) if waits else Entry())

    def _entry(self, known: Known, query: QueryState, from_s: float) -> Entry:
        """Return its times and its order; nothing is due before ``from_s``."""
        metrics = query.metrics
        grows = metrics.buffered_rows is not None
        return Entry(
            overdue_s(query, self._bound_s(known)),
            max(known.due_s, from_s),
            max(known.drain_s, from_s),
            query.since_s,
            known.urgency_s if known.rank != OTHER else query.since_s,
            -query.spec.priority,
            known.rank,
            (metrics.arrival_rate or 0.0) * row_cost_s(metrics) if grows else 0.0,
            metrics.batch_start_s or 0.0,
        )

    def _bound_s(self, known: Known) -> float:
        """Return the bound on waiting that the load asks for."""
        return self._load_round_s

    def _meet(self, place: int, query: QueryState, before: Known | None) -> Known:
        deadlines: Deadlines = query.spec.deadlines
        if before is not None and before.epochs.adopt(deadlines):
            before.seen = (None, before.seen[1])  # its times are to be worked out again
            return before
        self._known[query.name] = Known(place, QueryEpochs(deadlines, self._estimator))
        return self._known[query.name]

    def _learn(self, known: Known, query: QueryState) -> None:
        metrics = query.metrics
        if known.batches != metrics.batches:  # may be told after the arrival, too
            known.fruitless = 0
        elif known.seen[1] != query.admitted_s and query.phase != "running":
            known.fruitless += 1
            if query.admitted_s is not None:
                known.epochs.find_nothing(query.admitted_s, asked=query.spec.one_batch)
        # What a batch that still runs finds is not known: it is looked at again when it has ended.
        looked_s = known.seen[1] if query.phase == "running" else query.admitted_s
        known.seen, known.batches = (metrics, looked_s), metrics.batches
        epochs = known.epochs
        epochs.update(metrics)
        known.fixed_s = max(metrics.batch_fixed_s or UNKNOWN_COST_S, metrics.batch_empty_s or 0.0)
        mean_s = epochs.arrival.mean_s if epochs.arrival is not None else 0.0
        known.cost_s, known.expected_s = cost_s(known, query), epochs.base_s + mean_s
        known.rank, known.due_s, known.urgency_s = OTHER, again_s(known, query), math.inf
        known.closed_s = math.inf
        if epochs.stage == "emit":
            known.rank, known.urgency_s = EMIT, known.expected_s - known.cost_s
        elif epochs.stage == "sweep":
            known.rank, known.due_s = SWEEP, self._due_s(known, query)
            # Of several inputs the earliest orders, the last decides when a sweep is due.
            firsts = [epochs.arrival, *epochs.first_arrivals]
            known.first = min(filter(None, firsts), key=lambda delay: delay.mean_s, default=None)
            first_s = known.first.mean_s if known.first is not None else 0.0
            known.urgency_s = epochs.base_s + first_s - known.cost_s
        if self._interruptible:
            self._tabulate(known)
        else:
            known.drain_s = drain_s(known, query)

    def _due_s(self, known: Known, query: QueryState) -> float:
        """Return from when on a sweep finds something."""
        if self._interruptible:
            return known.expected_s  # one that comes too early wastes nothing
        last_try_s = known.epochs.last_read_s
        if known.fruitless and query.admitted_s is not None:
            last_try_s = max(last_try_s, query.admitted_s)
        waste_s = EARLY_S if query.spec.one_batch else query.metrics.batch_s or known.fixed_s
        ready_s = known.epochs.ready_s(waste_s, last_try_s)
        known.closed_s = self._closed_s(known, query, last_try_s)
        asked = query.spec.idle_after_s is not None and query.spec.one_batch
        if asked and last_try_s < known.epochs.base_s:
            ready_s = min(ready_s, known.epochs.base_s)  # a silence is counted from a look on
        return min(ready_s, known.closed_s)

    def _closed_s(self, known: Known, query: QueryState, last_try_s: float) -> float:
        """Return when a window can be closed without new data; infinite if it must not be."""
        if query.spec.idle_after_s is None:
            return math.inf
        since_s, again_s = known.epochs.base_s, IDLE_RETRY_S
        if query.spec.one_batch:
            again_s = IDLE_ASK_S
        elif len(query.spec.deadlines.inputs) == 1:  # silent since its last row was read
            since_s, again_s = max(since_s, known.epochs.last_read_s), IDLE_ASK_S
        closed_s = since_s + query.spec.idle_after_s + IDLE_AFTER_S
        return max(closed_s, last_try_s + again_s)

    def _tabulate(self, known: Known) -> None:
        if known.rank == EMIT:
            self._table.put_arrived(known.place, known.expected_s, known.cost_s)
        elif known.rank == SWEEP:
            self._table.put(known.place, known.epochs.base_s, known.first, known.cost_s)
        else:
            self._table.clear(known.place)

    # -- whom to admit --------------------------------------------------------------------------

    def _find_overdue(self, snapshot: Snapshot) -> tuple[list[QueryState], float]:
        places = self._due_queries.overdue(snapshot.now_s)
        return [snapshot.queries[place] for place in places], math.inf  # decide() knows the next

    def _overdue(self, query: QueryState, snapshot: Snapshot) -> Admission:
        known = self._known[query.name]
        return replace(
            super()._overdue(query, snapshot),
            row_limit=self._row_limit(query, snapshot),
            figures=self._figures(known, known.epochs.stage),
        )

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        """Rank with vectors: of ten thousand queries that wait only a few are looked at."""
        if self._short_of_memory and snapshot.cycle_s is not None:
            yield from self._freeing(snapshot, snapshot.cycle_s)
            return
        for place in self._ready(snapshot.now_s):
            yield self._admission(snapshot.queries[place], snapshot)
        if self._short_of_memory or snapshot.running or self._interruptible:
            return
        first_sweep_s = self._due_queries.first_due_s(SWEEP)
        for place in self._due_queries.to_drain(snapshot.now_s):
            if self._drained_s(snapshot.queries[place], snapshot.now_s) < first_sweep_s:
                yield self._admission(snapshot.queries[place], snapshot, drain=True)
                return  # one at a time: two drains could hold up a sweep together

    def _ready(self, now_s: float) -> list[int]:
        """Return those that can go now, in the order in which they should."""
        if isinstance(self._due_queries, VectorDueQueries) and self._interruptible:
            return self._due_queries.by_slack(self._table.slacks(now_s), now_s)
        ready = self._due_queries.due(now_s)
        return sorted(ready, key=self._freed, reverse=True) if self._short_of_memory else ready

    def _freeing(self, snapshot: Snapshot, cycle_s: float) -> Iterable[Admission]:
        """Admit operators, where they can run apart, that let most events go within a cycle."""
        found = []
        for place in self._ready(snapshot.now_s):  # ties stay in the order of slack
            query = snapshot.queries[place]
            operators = _memory.operators_now(query.metrics, snapshot.now_s)
            found.append((*_memory.best_operators(operators, cycle_s), query))
        found.sort(key=lambda each: -each[0])
        for _, depth, query in found:
            yield replace(self._admission(query, snapshot), operators=depth or None)

    def _freed(self, place: int) -> float:
        query = self._queries[place]
        return _memory.freed_rows(query, self._known[query.name].rank == EMIT)

    def _slack_s(self, known: Known) -> float:
        """Return the slack; a sweep that is due counts as arrived when it was expected."""
        if known.rank == SWEEP and known.due_s > self._now_s:
            return expected_slack(self._now_s, known.epochs.base_s, known.first, known.cost_s)
        return known.urgency_s - self._now_s

    def _drained_s(self, query: QueryState, now_s: float) -> float:
        """Return when a drain that begins now would end; it must hold up no sweep, nor its own."""
        rows_s = waiting_rows(query, now_s) * (query.metrics.batch_per_row_s or 0.0)
        return now_s + drained_fixed_s(self._known[query.name], query) + 2 * rows_s

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
        needed_s = epochs.window_end_s if stage == "sweep" and query.spec.one_batch else None
        return Admission(query.name, reason, limit, figures, watermark_s=needed_s)

    def _row_limit(self, query: QueryState, snapshot: Snapshot) -> int | None:
        """Limit the rows of a batch.

        An emit needs no input, unless it comes so late that it can sweep the next window too.
        Others are limited only where they would take more memory than there is.
        """
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
        return fit if waiting_rows(query, snapshot.now_s) > fit else None

    def _prospect(self, query: QueryState, ahead: int | None) -> Prospect:
        known = self._known[query.name]
        entry, end_s = self._entry(known, query, -math.inf), known.epochs.window_end_s
        return Prospect(
            self._work(known),
            entry.due_s,
            entry.overdue_s,
            ahead,
            end_s if math.isfinite(end_s) else None,
        )

    def _work(self, known: Known) -> Work:
        """Tell what its next batch is for."""
        if known.rank == OTHER:
            return "look" if known.fruitless else "refresh"
        return "result" if known.rank == EMIT else "window"

    def _figures(self, known: Known, stage: str) -> Figures:
        epochs = known.epochs
        slack_s = self._slack_s(known)
        if not math.isfinite(slack_s):
            return Figures(stage, cost_s=known.cost_s)
        arrival = epochs.arrival
        low_s, high_s = epochs.interval_s
        return Figures(
            stage,
            slack_s=slack_s,
            window_end_s=epochs.window_end_s,
            arrival_s=known.expected_s if arrival else None,
            arrival_low_s=epochs.base_s + low_s if arrival else None,
            arrival_high_s=epochs.base_s + high_s if arrival else None,
            cost_s=known.cost_s,
        )
