"""Events one at a time through operators, in cycles of virtual time, in bulk.

A watermark travels with the events: it has passed an operator when those before it have.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from slackwater.core.clock import VirtualClock
from slackwater.core.errors import UsageError
from slackwater.core.model import (
    Memory,
    OperatorMetrics,
    Outlook,
    QueryMetrics,
    QueryState,
    Schedule,
    Snapshot,
    Sweep,
)
from slackwater.engines.simulator.admitting import refuse_not_waiting
from slackwater.engines.simulator.flow import FEW, Floats, run_in_order, run_shared
from slackwater.engines.simulator.jvm import Heap, WarmUp
from slackwater.engines.simulator.pipeline import PipelineQuery, PipelineSegment
from slackwater.engines.simulator.query import Result
from slackwater.engines.simulator.sources import Mark, Sources
from slackwater.progress.forwarding import outlook

Execution = Literal["cores", "threads", "priorities"]

NO_TIME_S = 1e-9  # there are no batches, so nothing is paid for each
STEP_S = 0.05  # of threads, whose shares change with their queues
BUFFERED = 3000.0  # events at most between two operators that are threads
NICE_STEP = 1.25  # ratio of the shares of two neighbouring nice values


@dataclass(frozen=True, slots=True)
class Usage:
    """What a cycle used."""

    at_s: float
    memory_bytes: float
    busy_cores: float
    collecting: float  # share of the cores
    events: float  # that operators processed, per second


class OperatorEngine:
    """Driver and enforcer of queries on one node.

    Parameters
    ----------
    clock
        Moved by :meth:`wait`, a cycle at a time.
    queries
        All with the same number of operators; a :class:`PipelineSegment` where a node runs a part.
    cores
        Of the node.
    cycle_s
        r: after it all are asked about again.
    execution
        ``cores``: queries have a core each, in the order of their admission, for a cycle at most;
        who runs dry leaves its core to the next. ``threads``: every operator is a
        thread, and the operating system shares the cores evenly. ``priorities``: the same, but
        the order of admissions becomes nice values, as a middleware would set them.
    heap
        When it is full, sources are held back, and so are their clocks: no event is lost, and
        none happens that has no place.
    warm_up
        How slow code is in the beginning; None: not at all.
    forwarding
        Whether the parts of a query on other nodes tell of their watermarks and costs.
    seed
        Of the watermarks' arrivals.
    """

    def __init__(
        self,
        clock: VirtualClock,
        queries: Sequence[PipelineQuery | PipelineSegment],
        *,
        cores: int = 24,
        cycle_s: float = 0.12,
        execution: Execution = "cores",
        heap: Heap | None = None,
        warm_up: WarmUp | None = None,
        forwarding: bool = True,
        seed: int = 1,
    ) -> None:
        segments = [q if isinstance(q, PipelineSegment) else PipelineSegment(q) for q in queries]
        if len({len(s.query.operators[s.part]) for s in segments}) != 1:
            raise UsageError("all queries of an engine need the same number of operators")
        self.clock, self.cycle_s, self.cores, self.execution = clock, cycle_s, cores, execution
        self.forwarding = forwarding
        self.steps = 1 if execution == "cores" else max(1, round(cycle_s / STEP_S))
        self._step_s = cycle_s / self.steps
        self.heap = Heap() if heap is None else heap
        self.results: list[Result] = []
        self.usage: list[Usage] = []
        self._warm_up = warm_up
        self._began_s = clock.now()
        self._segments = segments
        self._queries = [segment.query for segment in segments]
        self.places = {query.name: place for place, query in enumerate(self._queries)}
        self._sources = Sources(segments, self._began_s, seed)
        self._work_s = np.array([s.query.work_s[s.part] for s in segments])
        self._taken_s = self._work_s + [s.query.blocked_s[s.part] for s in segments]
        self._each_s: list[float] = self._work_s.sum(axis=1).tolist()  # of an event at its source
        self._reach = np.array([s.query.reach[s.part] for s in segments])
        self._shown = [_shown(segment) for segment in segments]
        self._bytes = np.array([query.event_bytes for query in self._queries])
        self._keeps = np.array([any(o.keeps for o in s.query.operators[s.part]) for s in segments])
        self._done = np.zeros((len(segments), self._work_s.shape[1] + 1))
        self._state_bytes = sum(s.query.state_bytes for s in segments if s.is_last)
        self._kept_from = np.zeros(len(segments))  # events of windows that ended are gone
        self._marks: list[deque[Mark]] = [deque() for _ in segments]
        self._came = np.zeros(len(segments))  # from other nodes since the last cycle
        self._depth = np.zeros(len(segments), dtype=np.intp)  # operators admitted to run
        self._order: list[int] = []  # in which places were admitted
        self._weights = np.ones(len(segments))
        self._states = [QueryState(query.spec) for query in self._queries]
        began_s = [self._began_s - query.delay_s for query in self._queries]
        self._known_marks = [Mark(s, s, 0.0, self._began_s) for s in began_s]  # the last of each
        self._passed_s = began_s  # watermarks that have gone through
        self._fresh = np.zeros(len(segments), dtype=bool)  # those with something to tell
        self.arrived: list[tuple[int, Mark]] = []  # at sources, in the last step
        self.passed: list[tuple[int, Mark]] = []  # through this node, in the last step
        self._beyond = np.full(len(segments), math.inf)  # events that the next node has room for
        self.downstream: dict[int, tuple[OperatorEngine, int]] = {}  # by place: where it goes on

    # -- driver ---------------------------------------------------------------------------------

    @property
    def stream_now_s(self) -> float:
        """The time of the streams: it stands still while sources are held back."""
        return self.clock.now() - self._sources.held_s

    @property
    def full(self) -> bool:
        return self.live_bytes() >= self.heap.limit_bytes

    def collect(self, now_s: float) -> Snapshot:
        memory = Memory(int(self.live_bytes()), int(self.heap.limit_bytes))
        slots = len(self._states)  # the order of all is wanted: see _run
        return Snapshot(self.stream_now_s, slots, tuple(self._states), memory, self.cycle_s)

    def wait(self, until_s: float) -> None:
        """Let one cycle pass, whatever was asked for: nobody can be admitted within it."""
        for _ in range(self.steps):
            held, now_s = self.full, self.clock.now()
            self.clock.advance_to(now_s + self._step_s)
            self.step(now_s, held)
        self.end_cycle()

    def step(self, now_s: float, held: bool) -> None:
        """Do what happened since this time, in which sources were perhaps held back."""
        self.passed, self.arrived = [], []
        self._take_in(now_s, held)
        before = self._done.copy()
        busy_s = self._run(now_s)
        moved = self._done - before
        self._finish_marks(now_s, before[:, -1], moved[:, -1])
        self._note(now_s, busy_s, moved)
        self._fresh |= moved[:, 1:].any(axis=1)

    def end_cycle(self) -> None:
        """Tell what has changed; admissions are over."""
        if self.execution != "threads":  # nobody asks there
            self._tell(np.flatnonzero(self._fresh))
        self._fresh[:] = False
        self._depth[:] = 0
        self._order.clear()

    # -- enforcer -------------------------------------------------------------------------------

    def enforce(self, schedule: Schedule) -> None:
        if self.execution == "threads":
            return
        for rank, admission in enumerate(schedule.admissions):
            place = self.places.get(admission.query, -1)
            refuse_not_waiting(admission.query, self._states[place] if place >= 0 else None)
            operators = admission.operators or self._work_s.shape[1]
            self._depth[place] = min(operators, self._work_s.shape[1])
            self._order.append(place)
            nice = min(39.0, 40.0 * rank / max(1, len(self._states)))
            self._weights[place] = NICE_STEP**-nice

    # -- one cycle ------------------------------------------------------------------------------

    def deliver(self, place: int, events: float, marks: Sequence[Mark]) -> None:
        """Take what the node before has let through."""
        self._came[place] += events
        for mark in marks:
            self._marks[place].append(mark)
            if not self.forwarding:  # else it was told when it came to the source
                self.learn(place, replace(mark, came_s=self.stream_now_s))

    def hold_up(self) -> None:
        """Stop threads when the node behind has no room; the papers' schedulers let queues grow."""
        if self.execution == "threads":
            for place, (other, there) in self.downstream.items():
                waiting = float(other._done[there, 0] - other._done[there, 1] + other._came[there])
                self._beyond[place] = max(0.0, BUFFERED / float(other._reach[there, 0]) - waiting)

    def learn(self, place: int, mark: Mark) -> None:
        """Learn that a sweeping watermark has come, here or to the node of its query's source."""
        self._known_marks[place] = mark
        self._fresh[place] = True

    def _take_in(self, now_s: float, held: bool) -> None:
        """Take in events and watermarks of this cycle, unless sources are held back."""
        came, self._came = self._came, np.zeros(len(self._queries))
        self._fresh |= came > FEW
        if held:
            self._sources.held_s += self._step_s
        else:
            fresh, marks = self._sources.take(now_s, self._step_s)
            came = came + fresh
            self.arrived = [(place, mark) for place, mark in enumerate(marks) if mark is not None]
        for place, mark in self.arrived:
            self._marks[place].append(mark)
            self.learn(place, mark)
        self._filling = float((came * self._reach[:, 0] * self._bytes).sum()) / self._step_s
        self._fresh |= self._done[:, 0] - self._done[:, -1] < FEW  # has something to do again
        self._done[:, 0] += came

    def _run(self, now_s: float) -> float:
        """Let operators work; the time on cores that it took."""
        self._collecting = self.heap.collecting(self.live_bytes(), self._filling)
        speed = 1.0 - self._collecting
        if self._warm_up is not None:
            speed /= self._warm_up.factor(now_s - self._began_s)
        if self.execution == "cores":
            rows = np.array(self._order, dtype=np.intp)
            self._done[rows], busy_s = run_in_order(
                self._done[rows],
                self._taken_s[rows] / speed,
                self._depth[rows],
                self.cores,
                self._step_s,
            )
            return busy_s
        within = BUFFERED / self._reach[:, 1:]
        return run_shared(
            self._done,
            self._work_s / speed,
            self._work_s / self._taken_s,
            np.concatenate((within, self._beyond[:, None]), axis=1),
            np.broadcast_to(self._weights[:, None], self._work_s.shape),
            self.cores,
            self._step_s,
        )

    def _finish_marks(self, now_s: float, before: Floats, moved: Floats) -> None:
        for place in np.flatnonzero(moved > 0).tolist():
            marks = self._marks[place]
            while marks and marks[0].position <= self._done[place, -1] + FEW:
                mark = marks.popleft()
                share = (mark.position - before[place]) / moved[place]
                at_s = now_s + self._step_s * min(1.0, max(0.0, share))
                if self._segments[place].is_last:
                    self.results.append(Result(self._queries[place].name, mark.ended_s, at_s))
                self.passed.append((place, mark))
                self._passed_s[place], self._kept_from[place] = mark.end_s, mark.position
                self._fresh[place] = True

    # -- what is seen of it ---------------------------------------------------------------------

    def pending_s(self) -> list[float]:
        """Return how long ago windows ended whose watermark is still on its way here."""
        now_s = self.clock.now()
        return [now_s - mark.ended_s for marks in self._marks for mark in marks]

    def moved_on(self, place: int) -> float:
        """Return how many events of the source have passed this node so far."""
        return float(self._done[place, -1])

    def live_bytes(self) -> float:
        queued = ((self._done[:, :-1] - self._done[:, 1:]) * self._reach).sum(axis=1)
        kept = (self._done[:, -1] - self._kept_from) * self._reach[:, -1] * self._keeps
        return float(((queued + kept) * self._bytes).sum()) + self._state_bytes

    def _note(self, now_s: float, busy_s: float, moved: Floats) -> None:
        events = float((moved[:, 1:] * self._reach).sum()) / self._step_s
        busy = min(float(self.cores), busy_s / self._step_s)
        self.usage.append(Usage(now_s, self.live_bytes(), busy, self._collecting, events))

    def _tell(self, places: NDArray[np.intp]) -> None:
        now_s = self.stream_now_s
        for place in places.tolist():
            state = self._states[place]
            queued = float(self._done[place, 0] - self._done[place, -1])
            ran = bool(self._depth[place])
            self._states[place] = QueryState(
                state.spec,
                "waiting" if queued > FEW else "idle",
                self._oldest_s(place, queued, now_s),
                now_s if ran else state.admitted_s,
                state.admissions + ran,
                self._metrics(place, queued, now_s),
            )

    def _oldest_s(self, place: int, queued: float, now_s: float) -> float:
        """Return when the first event that waits came; a node without the source guesses."""
        if self._segments[place].is_first:
            return self._sources.came_s(place, float(self._done[place, -1]))
        return now_s - queued / self._queries[place].rate

    def _metrics(self, place: int, queued: float, now_s: float) -> QueryMetrics:
        query, arrived = self._queries[place], self._known_marks[place]
        beyond = Outlook()
        if self.forwarding and place in self.downstream:
            node, there = self.downstream[place]
            beyond = outlook(node._states[there].metrics)
        return QueryMetrics(
            batches=self._states[place].metrics.batches + 1,
            rows=int(self._done[place, -1]),
            backlog_rows=queued,
            buffered_rows=queued,
            arrival_rate=self._rate(place),
            batch_fixed_s=NO_TIME_S,
            batch_per_row_s=self._each_s[place],
            batch_empty_s=NO_TIME_S,
            batch_s=self.cycle_s,
            batch_start_s=now_s,
            selectivity=query.window_selectivity * float(query.reach[-1]),
            watermark_s=self._passed_s[place],
            next_watermark_s=arrived.end_s,
            sweep=Sweep(arrived.end_s, arrived.came_s) if arrived.position else None,
            beyond=beyond,
            operators=self._operators(place),
            state_rows=query.rows_out,
            state_bytes=int(query.state_bytes),
        )

    def _rate(self, place: int) -> float | None:
        """Return the rate that the source sees; other nodes are told no more than the mean."""
        if self._segments[place].is_first:
            return float(self._sources.rate_seen[place])
        return self._queries[place].rate if self.forwarding else None

    def _operators(self, place: int) -> tuple[OperatorMetrics, ...]:
        done = self._done[place].tolist()
        return tuple(
            [
                OperatorMetrics((before - after) * share, out, cost_s)
                for before, after, (share, out, cost_s) in zip(
                    done, done[1:], self._shown[place], strict=False
                )
            ]
        )


def _shown(segment: PipelineSegment) -> list[tuple[float, float, float]]:
    """Return of each operator: events that reach it, events out for one in, cost of one."""
    query, shown = segment.query, segment.query.operators[segment.part]
    outs = [operator.selectivity for operator in shown]
    if segment.is_last and not shown[-1].keeps:
        outs[-1] = query.window_selectivity
    reach = query.reach[segment.part].tolist()
    return [(share, out, o.cost_s) for share, out, o in zip(reach, outs, shown, strict=True)]


def least_cores(queries: Sequence[PipelineQuery]) -> int:
    """Return how many cores the queries fill if nothing is wasted."""
    return math.ceil(sum(query.rate * float(query.work_s.sum()) for query in queries))
