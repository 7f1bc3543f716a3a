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
from slackwater.core.errors import EngineError, UsageError
from slackwater.core.model import (
    Memory,
    OperatorMetrics,
    QueryMetrics,
    QueryState,
    Schedule,
    Snapshot,
)
from slackwater.engines.simulator.flow import (
    fair_shares,
    run_paths,
    run_threads,
    wanted_by_threads,
)
from slackwater.engines.simulator.heap import Heap
from slackwater.engines.simulator.pipeline import PipelineQuery, Segment
from slackwater.engines.simulator.query import Result
from slackwater.engines.simulator.sweeps import FirstArrivals
from slackwater.engines.simulator.warmup import WarmUp

Floats = NDArray[np.float64]
Execution = Literal["cores", "threads", "priorities"]

FEW = 1e-6  # events: less than that is nothing
NO_TIME_S = 1e-9  # there are no batches, so nothing is paid for each
STEP_S = 0.05  # of threads, whose shares change with their queues
PASSES = 8  # over threads, in a step
BUFFERED = 3000.0  # events at most between two operators that are threads
SLICE_S = 0.003  # that an operating system gives a thread before the next one's turn
SWITCH_S = 0.0001  # lost when a core goes over to another query's data
NICE_STEP = 1.25  # ratio of the shares of two neighbouring nice values


@dataclass(slots=True)
class Mark:
    """A sweeping watermark on its way."""

    end_s: float  # of its window, in the time of the streams
    ended_s: float  # the same on the clock
    position: float  # events of the source before it
    came_s: float  # to the source, in the time of the streams


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
        All with the same number of operators; a :class:`Segment` where a node runs a part.
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
        Whether the parts of a query on other nodes tell of their watermarks and queues.
    seed
        Of the watermarks' arrivals.
    """

    def __init__(
        self,
        clock: VirtualClock,
        queries: Sequence[PipelineQuery | Segment],
        *,
        cores: int = 24,
        cycle_s: float = 0.12,
        execution: Execution = "cores",
        heap: Heap | None = None,
        warm_up: WarmUp | None = None,
        forwarding: bool = True,
        seed: int = 1,
    ) -> None:
        segments = [q if isinstance(q, Segment) else Segment(q) for q in queries]
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
        self._rng = np.random.default_rng(seed)
        self._work_s = np.array([s.query.work_s[s.part] for s in segments])
        self._taken_s = self._work_s + [s.query.blocked_s[s.part] for s in segments]
        self._reach = np.array([s.query.reach[s.part] for s in segments])
        self._rate = np.array([s.query.rate for s in segments])
        self._starts_s = self._began_s + np.array(
            [s.query.starts_s if s.is_first else math.inf for s in segments]
        )
        self._bytes = np.array([query.event_bytes for query in self._queries])
        self._keeps = np.array([any(o.keeps for o in s.query.operators[s.part]) for s in segments])
        self._done = np.zeros((len(segments), self._work_s.shape[1] + 1))
        self._held_s = 0.0  # for how long all sources were held back so far
        self._state_bytes = sum(s.query.state_bytes for s in segments if s.is_last)
        self._kept_from = np.zeros(len(segments))  # events of windows that ended are gone
        arrivals = {(q.rate, q.delays): FirstArrivals(q.rate, q.delays) for q in self._queries}
        self._arrivals = [arrivals[query.rate, query.delays] for query in self._queries]
        self._next_end_s = [
            q.window.next_end(self._began_s + q.starts_s + q.delay_s) for q in self._queries
        ]
        self._sweep_s = [
            self._draw_sweep(place) if segment.is_first else math.inf
            for place, segment in enumerate(segments)
        ]
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
        self.downstream: dict[int, tuple[OperatorEngine, int]] = {}  # by place: where it goes on

    # -- driver ---------------------------------------------------------------------------------

    @property
    def stream_now_s(self) -> float:
        """The time of the streams: it stands still while sources are held back."""
        return self.clock.now() - self._held_s

    @property
    def full(self) -> bool:
        return self.live_bytes() >= self.heap.limit_bytes

    def collect(self, now_s: float) -> Snapshot:
        memory = Memory(int(self.live_bytes()), int(self.heap.limit_bytes))
        slots = len(self._states)  # the order of all is wanted: see _run
        return Snapshot(self.stream_now_s, slots, tuple(self._states), memory, self.cycle_s)

    def wait(self, until_s: float) -> None:
        """One cycle, whatever was asked for: nobody can be admitted within it."""
        for _ in range(self.steps):
            held, now_s = self.full, self.clock.now()
            self.clock.advance_to(now_s + self._step_s)
            self.step(now_s, held)
        self.end_cycle()

    def step(self, now_s: float, held: bool) -> None:
        """What happened since this time, in which sources were perhaps held back."""
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
            place = self.places[admission.query]
            if self._states[place].phase != "waiting":
                raise EngineError(f"{admission.query} was admitted though it has nothing to do")
            operators = admission.operators or self._work_s.shape[1]
            self._depth[place] = min(operators, self._work_s.shape[1])
            self._order.append(place)
            nice = min(39.0, 40.0 * rank / max(1, len(self._states)))
            self._weights[place] = NICE_STEP**-nice

    # -- one cycle ------------------------------------------------------------------------------

    def deliver(self, place: int, events: float, marks: Sequence[Mark]) -> None:
        """What the node before has let through."""
        self._came[place] += events
        for mark in marks:
            self._marks[place].append(mark)
            if not self.forwarding:  # else it was told when it came to the source
                self.learn(place, replace(mark, came_s=self.stream_now_s))

    def learn(self, place: int, mark: Mark) -> None:
        """A sweeping watermark has come, here or to the node where its query's source is."""
        self._known_marks[place] = mark
        self._fresh[place] = True

    def _take_in(self, now_s: float, held: bool) -> None:
        """Events and watermarks that arrive in this cycle, unless sources are held back."""
        came, self._came = self._came, np.zeros(len(self._queries))
        self._fresh |= came > FEW
        if held:
            self._held_s += self._step_s
        else:
            until_s = now_s + self._step_s - self._held_s
            open_s = np.clip(until_s - self._starts_s, 0.0, self._step_s)
            came = came + self._rate * open_s
            for place in [p for p, at_s in enumerate(self._sweep_s) if at_s <= until_s]:
                self._sweep(place, self._done[place, 0] + came[place], until_s)
        self._filling = float((came * self._bytes).sum()) / self._step_s
        self._fresh |= self._done[:, 0] - self._done[:, -1] < FEW  # has something to do again
        self._done[:, 0] += came

    def _sweep(self, place: int, total: float, until_s: float) -> None:
        end_s, came_s = self._next_end_s[place], self._sweep_s[place]
        position = float(total - self._rate[place] * (until_s - came_s))
        mark = Mark(end_s, end_s + self._held_s, max(0.0, position), came_s)
        self._marks[place].append(mark)
        self.learn(place, mark)
        self.arrived.append((place, mark))
        self._next_end_s[place] = self._queries[place].window.next_end(end_s)
        self._sweep_s[place] = self._draw_sweep(place)

    def _draw_sweep(self, place: int) -> float:
        """When the next window's watermark arrives, in the time of its stream."""
        query = self._queries[place]
        delays = self._arrivals[place].draw(self._rng, query.streams)
        return self._next_end_s[place] + query.delay_s + float(delays.max())

    def _run(self, now_s: float) -> float:
        """Let operators work; the time on cores that it took."""
        self._collecting = self.heap.collecting(self.live_bytes(), self._filling)
        speed = 1.0 - self._collecting
        if self._warm_up is not None:
            speed /= self._warm_up.factor(now_s - self._began_s)
        if self.execution != "cores":
            return self._run_threads(speed)
        rows, whole_s = np.array(self._order, dtype=np.intp), self._step_s - SWITCH_S
        taken_s = self._taken_s[rows] / speed
        given_s = np.full(len(rows), whole_s)
        done, left_s = run_paths(self._done[rows], taken_s, given_s, self._depth[rows])
        # A core whose query has run dry goes on with the next in order, until none has time left.
        used_s = whole_s - left_s
        spare_s = self.cores * whole_s - (np.cumsum(used_s) - used_s)
        short = spare_s < used_s
        if short.any():
            given_s = np.clip(spare_s, 0.0, used_s)
            done, left_s = run_paths(self._done[rows], taken_s, given_s, self._depth[rows])
            used_s = given_s - left_s
        self._done[rows] = done
        return float(used_s.sum())

    def _run_threads(self, speed: float) -> float:
        work_s, room = self._work_s / speed, BUFFERED / self._reach
        crowded = np.count_nonzero(self._done[:, :-1] - self._done[:, 1:] > FEW) > self.cores
        useful = SLICE_S / (SLICE_S + SWITCH_S) if crowded else 1.0
        left_s = self.cores * self._step_s * useful
        most = self._step_s * self._work_s / self._taken_s  # the rest of its time it is blocked
        weights = np.broadcast_to(self._weights[:, None], work_s.shape)
        for _ in range(PASSES):  # what one could not use for want of room is another's
            wanted = wanted_by_threads(self._done, work_s, room)
            shares = fair_shares(wanted, most, left_s, weights)
            used = run_threads(self._done, work_s, room, shares)
            most, left_s = most - used, left_s - float(used.sum())
            if left_s <= NO_TIME_S or not used.any():
                break
        return self.cores * self._step_s - left_s / useful

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

    def moved_on(self, place: int) -> float:
        """Events of the source that have passed this node so far."""
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
            state, query = self._states[place], self._queries[place]
            queued = float(self._done[place, 0] - self._done[place, -1])
            ran = bool(self._depth[place])
            self._states[place] = QueryState(
                state.spec,
                "waiting" if queued > FEW else "idle",
                now_s - queued / query.rate,
                now_s if ran else state.admitted_s,
                state.admissions + ran,
                self._metrics(place, queued, now_s),
            )

    def _metrics(self, place: int, queued: float, now_s: float) -> QueryMetrics:
        query, segment = self._queries[place], self._segments[place]
        arrived = self._known_marks[place]
        per_row_s, backlog = float(self._work_s[place].sum()), queued
        if self.forwarding and place in self.downstream:
            node, there = self.downstream[place]
            rest_s, waiting = node.outlook(there)
            backlog += waiting * rest_s / per_row_s
            per_row_s += rest_s
        return QueryMetrics(
            batches=self._states[place].metrics.batches + 1,
            rows=int(self._done[place, -1]),
            backlog_rows=backlog,
            buffered_rows=backlog,
            arrival_rate=query.rate if segment.is_first or self.forwarding else None,
            batch_fixed_s=NO_TIME_S,
            batch_per_row_s=per_row_s,
            batch_empty_s=NO_TIME_S,
            batch_s=self.cycle_s,
            batch_start_s=now_s,
            selectivity=query.window_selectivity * float(query.reach[-1]),
            watermark_s=self._passed_s[place],
            next_watermark_s=arrived.end_s,
            sweep_arrived_s=arrived.came_s if arrived.position else None,
            operators=self._operators(place),
            state_rows=query.rows_out,
            state_bytes=int(query.state_bytes),
        )

    def _operators(self, place: int) -> tuple[OperatorMetrics, ...]:
        query, segment = self._queries[place], self._segments[place]
        done, reach = self._done[place].tolist(), self._reach[place].tolist()
        shown = query.operators[segment.part]
        outs = [operator.selectivity for operator in shown]
        if segment.is_last and not shown[-1].keeps:
            outs[-1] = query.window_selectivity
        return tuple(
            OperatorMetrics((before - after) * share, out, operator.cost_s)
            for before, after, share, out, operator in zip(
                done, done[1:], reach, outs, shown, strict=False
            )
        )

    def outlook(self, place: int) -> tuple[float, float]:
        """For the node before: what an event still costs here, and how many wait."""
        queued = float(self._done[place, 0] - self._done[place, -1] + self._came[place])
        return float(self._work_s[place].sum()), queued


def least_cores(queries: Sequence[PipelineQuery]) -> int:
    """Cores that the queries fill if nothing is wasted."""
    return math.ceil(sum(query.rate * float(query.work_s.sum()) for query in queries))
