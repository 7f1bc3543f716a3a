"""Klink: run the micro-batch that completes a window, when it can; keep the rest fresh."""

import math
from collections.abc import Iterable, Sequence
from statistics import median

from slackwater import progress
from slackwater.core.model import Admission, Figures, QueryState, Snapshot, Work
from slackwater.policies._due_queries import Entry
from slackwater.policies._freshness import (
    age_s,
    closes_sessions,
    is_promised,
    is_refreshed,
    shown_s,
    work_s,
)
from slackwater.policies._known import (
    EMIT,
    OTHER,
    SWEEP,
    UNKNOWN_COST_S,
    Known,
    drain_s,
    drained_fixed_s,
    grown_cost_s,
    row_s,
    waiting_rows,
)
from slackwater.policies._load import Demand, Load
from slackwater.policies.base import OVERDUE_SHARE
from slackwater.policies.klink_paper import KlinkPaper
from slackwater.progress.epochs import RETRY_S

LOOK_S = 0.01  # CPU time of a trigger that finds nothing
ASK_S = 0.002  # and of one that is given back, because its source has told that nothing came
SILENT = 3  # looks in a row that found nothing: more are needed than a bad guess explains
SILENT_S = 2.0  # between two looks at a source that is silent, unless very many are
LOOKS_HELD = 3.0  # looks at silent sources in the time that no gate opens by itself
HEARD_S = 2.0  # until every gate has heard for how long it is to hold
INTERVAL_S = 0.05  # a trigger with an interval is not held for coming so much too early
IN_SLOT_S = 1.5  # until a batch that waits for its sink has given its slot back
PAUSE_S = 1.0  # of a query that catches up, now and then, to see whether it still does
OLD_S = 2.0  # that a query with a target counts as older than its wait, at most
NEXT = 0.5  # of the time between two deliveries: sooner after a batch it read that one
ON_TIME = 0.9  # of a target: when a batch is to be complete that keeps it
DRAINED = 0.3  # of all slots: while more are taken, only a drain that pays well is let in
DRAINS_S = 1.0  # between two drains of a query, at least
MUCH = 2.0  # times a batch's fixed cost: what waiting rows must cost for that
UNPROMISED = 0.25  # weight of a refresh that keeps no promise, against a result that is late
OLDEST_S = 10.0  # age at which a window comes to its gate, at most, or its period
ALIKE = 3.0  # costs from a third to three times the usual count as one: noise differs by as much
CHANGED = 2.0  # times: then what is usual has changed
EMITS = 16.0  # worth of a batch that ends a wait which has cost one already
MOST_WEIGHT = 1e9


class Klink(KlinkPaper):
    """One order for all work: weight × probability of a result ÷ cost of what it needs, × age.

    Sweeps, emits and refreshes are admitted in that order once they are due. A *sweep* is due
    when its watermark has probably arrived, an *emit* at once. A query without windows, and one
    whose results are updated, is *refreshed*: so often that its target is kept; without one, as
    often as the deadlines of all others leave room for, divided by priority. Work without a
    deadline gives way to sweeps that will need its slot.

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
    SIGMOD 2021. Smith, *Various optimizers for single-stage production*, 1956.
    """

    name = "klink"

    def __init__(
        self,
        seed: int = 0,
        *,
        confidence: float = 0.95,
        history: int = 400,
        memory_bound: float = 0.8,
        estimator: str = progress.DEFAULT,
    ) -> None:
        super().__init__(
            seed,
            confidence=confidence,
            history=history,
            memory_bound=memory_bound,
            estimator=estimator,
        )
        self._load = Load()
        self._patient_s = math.inf  # since when gates hold until a source is checked
        self._usual_s = UNKNOWN_COST_S  # what a window costs: the median

    def held_up(self, snapshot: Snapshot) -> dict[str, float]:
        found = super().held_up(snapshot)
        # Nothing is late of those of whom probably nothing has come.
        return {
            name: snapshot.now_s if _is_silent(self._known[name]) else since_s
            for name, since_s in found.items()
        }

    # -- what is known --------------------------------------------------------------------------

    def _measure_load(self, snapshot: Snapshot) -> bool:
        measured = super()._measure_load(snapshot)
        if measured and snapshot.cycle_s is None:
            self._load.measure(map(self._demand, snapshot.queries), snapshot.slots)
            self._measure_usual()
            looks_s = self._load.look_s
            if any(query.has_input is not None for query in snapshot.queries):
                looks_s = max(looks_s, self._load.check_s)
                self._patient_s = min(self._patient_s, snapshot.now_s + HEARD_S)
            else:
                self._patient_s = math.inf
            self._load_hold_s = max(self._load_hold_s, LOOKS_HELD * looks_s)
        return measured

    def _measure_usual(self) -> None:
        """Take what a window usually costs; where that has changed, all are looked at anew."""
        costs_s = [one.cost_s for one in self._known.values() if one.rank != OTHER]
        usual_s = max(median(costs_s), 1e-3) if costs_s else self._usual_s
        if not 1 / CHANGED < usual_s / self._usual_s < CHANGED:
            self._usual_s, self._outdated = usual_s, True

    def _is_empty(self, known: Known, query: QueryState) -> bool:
        """Tell whether a look would find nothing, as its source says and the last look did.

        Not where the clock alone closes windows, nor before its gate holds for long.
        """
        told = query.has_input is False and known.fruitless > 0
        return told and query.spec.idle_after_s is None and query.since_s >= self._patient_s

    def _demand(self, query: QueryState) -> Demand:
        known = self._known.get(query.name)
        if known is None:  # it has only just come
            return Demand(UNKNOWN_COST_S, None, query.spec.priority)
        batch_s = work_s(known)
        if self._is_empty(known, query):
            return Demand(LOOK_S, None, silent=True, told=True)
        if known.fruitless >= SILENT:
            look_s = ASK_S if query.spec.one_batch else LOOK_S
            return Demand(look_s, None, silent=True)
        if known.tries >= SILENT:
            return Demand(batch_s, None, silent=True)
        if not is_refreshed(query):
            return Demand(known.cost_s, known.epochs.period_s)
        target_s, every_s = query.spec.target_s, query.spec.trigger_s
        if target_s is not None:
            every_s = target_s - age_s(query)
        return Demand(batch_s, every_s, query.spec.priority)

    def _look_at(self, place: int, query: QueryState) -> None:
        known = self._known.get(query.name)
        if known is not None and known.has_input is not query.has_input:
            self._hear_input(known, query.has_input)
        super()._look_at(place, query)
        if query.in_sink:
            self._known[query.name].seen_in_sink = True

    def _hear_input(self, known: Known, has_input: bool | None) -> None:
        """Take what its source has told: who has input is not silent, whatever looks found."""
        known.has_input = has_input
        if has_input and known.fruitless:
            known.fruitless = known.tries = 0
            known.stretch, known.came_s = 1.0, self._now_s
            known.seen = (None, known.seen[1])  # its times are to be worked out again

    def _learn(self, known: Known, query: QueryState) -> None:
        ended = query.phase != "running"
        looked, end_s = ended and known.seen[1] != query.admitted_s, known.epochs.window_end_s
        if known.batches != query.metrics.batches:
            known.slow_sink, known.seen_in_sink = known.seen_in_sink, False
            if query.metrics.rows != known.rows:  # one without rows says nothing of others
                # Who stood behind a long batch of another took longer than its work.
                before_s, known.batch_s = known.batch_s, query.metrics.batch_s or math.inf
                known.work_s = min(before_s, known.batch_s)
        self._count_rows(known, query)
        super()._learn(known, query)
        if known.slow_sink:
            known.cost_s = min(known.cost_s, IN_SLOT_S)
        if self._interruptible:
            return
        self._count_looks(known, query, looked, moved=known.epochs.window_end_s > end_s)
        if known.epochs.behind and known.supply.pausing and query.metrics.backlog_rows is None:
            known.due_s = (query.metrics.batch_start_s or 0.0) + PAUSE_S
        if known.rank == SWEEP:
            known.drain_s = drain_s(known, query, DRAINS_S)
            grown_s = grown_cost_s(known, query, max(known.due_s, self._now_s))
            known.cost_s += grown_s
            known.urgency_s -= grown_s
        known.refreshing = False
        if _is_silent(known) and query.admitted_s is not None:
            pause_s = self._load.look_s
            if known.rank == OTHER:  # nothing was ever read
                pause_s = max(pause_s, min(SILENT_S, RETRY_S * 2.0 ** min(known.fruitless, 10)))
            known.due_s = max(known.due_s, min(query.admitted_s + pause_s, known.closed_s))
        if is_refreshed(query):
            due_s = self._refresh_s(known, query)
            if known.rank == OTHER or due_s < known.due_s:
                known.rank, known.refreshing = OTHER, True
                known.due_s = known.urgency_s = due_s
                known.cost_s = work_s(known)  # not of all rows until its window's end
        if known.came_s > (query.admitted_s or 0.0):  # nobody has read it yet
            known.due_s = min(known.due_s, known.came_s)

    def _count_rows(self, known: Known, query: QueryState) -> None:
        rows, known.rows = query.metrics.rows - known.rows, query.metrics.rows
        if rows > 0:
            known.count_rows(float(rows))
            known.supply.take(rows)
            known.stretch = max(1.0, 0.85 * known.stretch)
            known.epochs.hands_out_more = known.supply.more or known.supply.pausing

    def _count_looks(self, known: Known, query: QueryState, looked: bool, moved: bool) -> None:
        if looked and known.fruitless:
            known.supply.find_nothing()
            known.stretch *= 2.0
        if moved or known.epochs.behind:
            known.tries = 0
        elif looked and known.rank == SWEEP and (query.admitted_s or 0.0) >= known.epochs.base_s:
            known.tries += 1

    def _refresh_s(self, known: Known, query: QueryState) -> float:
        """Return when a query is to be refreshed; the stretch is kept within what is allowed."""
        metrics, spec = query.metrics, query.spec
        began_s = metrics.batch_start_s or 0.0
        if known.fruitless:
            began_s = max(began_s, query.admitted_s or 0.0)
        batch_s = metrics.batch_s or known.fixed_s
        fair_s = self._load.refresh_s(work_s(known), spec.priority)
        if spec.trigger_s is not None and spec.target_s is None:
            every_s = most_s = spec.trigger_s - INTERVAL_S  # it comes to its gate no sooner
        elif spec.target_s is not None:
            late_s = max(0.0, ON_TIME * spec.target_s - batch_s)
            every_s = most_s = max(late_s - age_s(query), min(late_s, fair_s))
            if known.fruitless:  # what comes now is as old as the last look, at most
                every_s = min(every_s, fair_s * known.stretch)
        else:
            most_s = max(fair_s, SILENT_S, self._load.look_s)
            every_s = min(fair_s * known.stretch, most_s)
        known.stretch = min(known.stretch, max(1.0, most_s / fair_s))
        more = known.supply.more if metrics.backlog_rows is None else known.epochs.behind
        due_s = self._delivered_s(known, query, began_s, every_s)
        known.soft_until_s = -1.0 if is_promised(query) else due_s + every_s
        if not metrics.batches and not known.fruitless:
            return 0.0
        # The batch that writes them reads as well; the one after it is a refresh again.
        closes = closes_sessions(query) and metrics.batches != known.closed_after + 1
        if closes:
            known.closed_after = metrics.batches
        at_once = not known.fruitless and (more or closes)
        return began_s if at_once else due_s

    def _delivered_s(
        self, known: Known, query: QueryState, began_s: float, every_s: float
    ) -> float:
        """Return when a refresh is best that is to come so long after the last one began.

        Before a delivery nothing is new. A promise takes the last one that keeps it; without one
        the machine's share says how often, so it is the first after that.
        """
        delivery = None if known.fruitless else known.epochs.delivery_s(began_s + every_s)
        if delivery is None:
            return began_s + every_s
        next_s, period_s = delivery
        if not is_promised(query):
            return min(next_s, began_s + max(every_s, SILENT_S))
        last_s = next_s - period_s
        return last_s if last_s > began_s + NEXT * period_s else began_s + every_s

    def _entry(self, known: Known, query: QueryState, from_s: float) -> Entry:
        entry = super()._entry(known, query, from_s)
        if self._interruptible:
            return entry
        chance, ripe_s = 1.0, max(known.due_s, query.since_s)
        if known.refreshing:
            chance /= 1 + known.fruitless
            chance *= 1.0 if is_promised(query) else UNPROMISED
            if query.spec.target_s is not None and not known.fruitless:
                # As old as what it shows, like a window's result; but no older for a loose promise.
                oldest_s = min(query.spec.target_s, OLD_S)
                ripe_s = min(ripe_s, max(shown_s(query), ripe_s - oldest_s))
        elif known.rank != OTHER:
            # Who catches up with hours is not older than who has waited for a window.
            oldest_s = max(known.epochs.period_s, OLDEST_S)
            ripe_s = max(known.epochs.base_s, query.since_s - oldest_s)
            # Who catches up emits with every batch, and has no wait that one would end.
            ends_wait = known.rank == EMIT and not known.epochs.behind
            chance *= EMITS if ends_wait else 1.0
            if _is_silent(known):  # nothing ages while nothing comes
                ripe_s = max(ripe_s, query.admitted_s or 0.0)
                chance /= max(known.tries, known.fruitless)
        late_s = entry.overdue_s
        if known.came_s > query.since_s:  # until then there was nothing to wait for
            ripe_s = max(ripe_s, known.came_s)
            late_s += known.came_s - query.since_s
        if self._is_empty(known, query):
            check_s = (query.admitted_s or query.since_s) + self._load.check_s
            late_s = max(late_s, check_s + OVERDUE_SHARE * query.spec.max_wait_s)
            entry = entry._replace(due_s=max(entry.due_s, check_s), drain_s=math.inf)
        return entry._replace(
            overdue_s=late_s,
            worth=min(query.spec.priority, MOST_WEIGHT) * chance,
            cost_s=self._rough_s(known.cost_s - query.metrics.beyond.fixed_s),  # what is done here
            ripe_s=ripe_s,
        )

    def _rough_s(self, cost_s: float) -> float:
        """Return a cost in steps from the usual one: small differences are not to order by.

        A duration tells what ran beside a batch as well. Of windows that end together, who once
        seemed to cost a little more would always come last, find more rows, and cost more.
        """
        return max(cost_s / ALIKE, min(self._usual_s, max(cost_s, 1e-3) * ALIKE))

    def _bound_s(self, known: Known) -> float:
        silent = _is_silent(known) and not self._interruptible
        return self._load_hold_s if silent else self._load_round_s

    # -- whom to admit --------------------------------------------------------------------------

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        if self._interruptible:
            yield from super()._rank(waiting, snapshot)
            return
        now_s = snapshot.now_s
        left = snapshot.free_slots - len(self._due_queries.overdue(now_s))
        near_s = self._due_queries.next_due(SWEEP, now_s, left)
        for place in self._ready(now_s):
            query = snapshot.queries[place]
            known = self._known[query.name]
            ends_s = now_s + known.cost_s
            if known.refreshing and now_s < known.soft_until_s and _needed(near_s, left, ends_s):
                continue
            left -= 1
            yield self._admission(query, snapshot)
        if self._short_of_memory:
            return
        for place in self._due_queries.to_drain(now_s):
            query = snapshot.queries[place]
            ends_s = self._drained_s(query, now_s)
            beside = left <= snapshot.slots * (1 - DRAINED) and not self._is_much(query, now_s)
            if not beside and not _needed(near_s, left, ends_s):
                yield self._admission(query, snapshot, drain=True)
                return  # one at a time: two drains could hold up a sweep together

    def _is_much(self, query: QueryState, now_s: float) -> bool:
        """Tell whether the rows that wait are worth a drain that slows other batches down."""
        known, rows = self._known[query.name], waiting_rows(query, now_s)
        return rows * row_s(known, query, rows) > MUCH * drained_fixed_s(known, query)

    def _ready(self, now_s: float) -> list[int]:
        if self._interruptible:
            return super()._ready(now_s)
        ready = self._due_queries.by_worth(now_s)
        return sorted(ready, key=self._freed, reverse=True) if self._short_of_memory else ready

    # -- what is said of it ---------------------------------------------------------------------

    def _admission(self, query: QueryState, snapshot: Snapshot, drain: bool = False) -> Admission:
        known = self._known[query.name]
        if not known.refreshing or drain:
            return super()._admission(query, snapshot, drain)
        return Admission(
            query.name,
            "first batch" if not query.metrics.batches else "refresh",
            self._row_limit(query, snapshot),
            self._figures(known, "refresh"),
        )

    def _work(self, known: Known) -> Work:
        if _is_silent(known):
            return "look"
        return "refresh" if known.refreshing else super()._work(known)

    def _figures(self, known: Known, stage: str) -> Figures:
        if not known.refreshing or stage == "drain":
            return super()._figures(known, stage)
        slack_s = known.due_s - self._now_s if known.due_s > 0 else None
        return Figures("refresh", slack_s=slack_s, cost_s=known.cost_s)


def _is_silent(known: Known) -> bool:
    """Tell whether looks at its input have brought nothing for a while."""
    return max(known.tries, known.fruitless) >= SILENT


def _needed(near_s: Sequence[float], left: int, ends_s: float) -> bool:
    """Tell whether sweeps will need all slots that are left before a batch ends.

    >>> _needed([10.0, 12.0], left=2, ends_s=11.0), _needed([10.0, 12.0], left=1, ends_s=11.0)
    (False, True)
    """
    return 0 < left <= len(near_s) and near_s[left - 1] < ends_s
