"""Events one at a time through operators, in cycles of virtual time, in bulk.

Queues are numbers of events, and all queries of an engine are rows of the same arrays. Progress is
counted in events *at the source*: an operator has done x when all that became of the first x events
has passed it. A watermark travels with them: it has passed when those before it have.
"""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slackwater.core.clock import VirtualClock
from slackwater.core.errors import EngineError, UsageError
from slackwater.core.model import Memory, QueryMetrics, QueryState, Schedule, Snapshot
from slackwater.engines.simulator.heap import Heap
from slackwater.engines.simulator.pipeline import PipelineQuery
from slackwater.engines.simulator.query import Result
from slackwater.engines.simulator.sweeps import FirstArrivals

Floats = NDArray[np.float64]

FEW = 1e-6  # events: less than that is nothing
NO_TIME_S = 1e-9  # there are no batches, so nothing is paid for each


@dataclass(slots=True)
class _Mark:
    """A sweeping watermark on its way."""

    end_s: float  # of its window, in the time of its stream
    ended_s: float  # the same on the clock
    position: float  # events of the source before it


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
        All with the same number of operators.
    cores
        An admitted query has one of them for a cycle.
    cycle_s
        r: after it all are asked about again.
    gated
        False: every operator is a thread, and the operating system shares the cores evenly.
    heap
        When it is full, sources are held back, and so are their clocks: no event is lost, and
        none happens that has no place.
    seed
        Of the watermarks' arrivals.
    """

    def __init__(
        self,
        clock: VirtualClock,
        queries: Sequence[PipelineQuery],
        *,
        cores: int = 24,
        cycle_s: float = 0.12,
        gated: bool = True,
        heap: Heap | None = None,
        seed: int = 1,
    ) -> None:
        if len({len(query.operators) for query in queries}) != 1:
            raise UsageError("all queries of an engine need the same number of operators")
        self.clock, self.cycle_s, self.gated = clock, cycle_s, gated
        self.slots = cores
        self.heap = Heap() if heap is None else heap
        self.results: list[Result] = []
        self.usage: list[Usage] = []
        self._queries = tuple(queries)
        self._places = {query.name: place for place, query in enumerate(queries)}
        self._rng = np.random.default_rng(seed)
        self._work_s = np.array([query.work_s for query in queries])
        self._reach = np.array([query.reach for query in queries])
        self._rate = np.array([query.rate for query in queries])
        self._bytes = np.array([query.event_bytes for query in queries])
        self._state_bytes = sum(query.state_bytes for query in queries)
        # Columns: what has come in, then what each operator has done.
        self._done = np.zeros((len(queries), self._work_s.shape[1] + 1))
        self._held_s = 0.0  # for how long all sources were held back so far
        arrivals = {(q.rate, q.delays): FirstArrivals(q.rate, q.delays) for q in queries}
        self._arrivals = [arrivals[query.rate, query.delays] for query in queries]
        self._next_end_s = [query.window.next_end(clock.now()) for query in queries]
        self._sweep_s = [self._draw_sweep(place) for place in range(len(queries))]
        self._marks: list[deque[_Mark]] = [deque() for _ in queries]
        self._admitted = np.zeros(len(queries), dtype=bool)
        self._states = [QueryState(query.spec) for query in queries]
        self._came_s = [clock.now() - query.delay_s for query in queries]  # watermarks come in
        self._passed_s = list(self._came_s)  # and gone through

    # -- driver ---------------------------------------------------------------------------------

    def collect(self, now_s: float) -> Snapshot:
        memory = Memory(int(self._live_bytes()), int(self.heap.limit_bytes))
        return Snapshot(now_s, self.slots, tuple(self._states), memory, self.cycle_s)

    def wait(self, until_s: float) -> None:
        """One cycle, whatever was asked for: nobody can be admitted within it."""
        now_s = self.clock.now()
        self._take_in(now_s)
        before = self._done.copy()
        busy_s = self._process()
        self.clock.advance_to(now_s + self.cycle_s)
        passed = self._done - before
        self._finish_marks(now_s, before[:, -1], passed[:, -1])
        self._note(now_s, busy_s, passed)
        self._tell(np.flatnonzero(passed[:, 1:].any(axis=1) | self._fresh))
        self._admitted[:] = False

    # -- enforcer -------------------------------------------------------------------------------

    def enforce(self, schedule: Schedule) -> None:
        for admission in schedule.admissions:
            place = self._places[admission.query]
            if self._states[place].phase != "waiting":
                raise EngineError(f"{admission.query} was admitted though it has nothing to do")
            self._admitted[place] = True
        if self.gated and np.count_nonzero(self._admitted) > self.slots:
            raise EngineError(f"more queries than the {self.slots} cores were admitted")

    # -- one cycle ------------------------------------------------------------------------------

    def _take_in(self, now_s: float) -> None:
        """Events and watermarks that arrive in this cycle, unless memory is full."""
        self._fresh = np.zeros(len(self._queries), dtype=bool)
        self._filling = 0.0
        if self._live_bytes() >= self.heap.limit_bytes:
            self._held_s += self.cycle_s
            return
        came = self._rate * self.cycle_s
        self._filling = float((came * self._bytes).sum()) / self.cycle_s
        until_s = now_s + self.cycle_s - self._held_s  # in the time of the streams
        for place in [p for p, at_s in enumerate(self._sweep_s) if at_s <= until_s]:
            late_s = until_s - self._sweep_s[place]
            position = self._done[place, 0] + came[place] - self._rate[place] * late_s
            end_s = self._next_end_s[place]
            self._marks[place].append(_Mark(end_s, end_s + self._held_s, position))
            self._came_s[place] = end_s
            self._next_end_s[place] = self._queries[place].window.next_end(end_s)
            self._sweep_s[place] = self._draw_sweep(place)
            self._fresh[place] = True
        self._fresh |= self._done[:, 0] - self._done[:, -1] < FEW  # has something to do again
        self._done[:, 0] += came

    def _draw_sweep(self, place: int) -> float:
        """When the next window's watermark arrives, in the time of its stream."""
        base_s = self._next_end_s[place] + self._queries[place].delay_s
        return base_s + float(self._arrivals[place].draw(self._rng, 1)[0])

    def _process(self) -> float:
        """Let operators work; the time on cores that it took."""
        self._collecting = self.heap.collecting(self._live_bytes(), self._filling)
        efficiency = 1.0 - self._collecting
        if self.gated:
            return self._process_paths(self.cycle_s * efficiency)
        return self._process_threads(self._shares() * efficiency)

    def _shares(self) -> Floats:
        """Seconds that each operator's thread gets of the cores."""
        wanted = (self._done[:, :-1] - self._done[:, 1:]) * self._work_s
        left_s = self.slots * self.cycle_s
        shares: Floats = np.zeros(wanted.shape)
        for _ in range(4):  # whoever needs less than its part leaves the rest to the others
            open_ = (wanted - shares > 1e-12) & (shares < self.cycle_s)
            if left_s <= 1e-9 or not open_.any():
                break
            part_s = left_s / np.count_nonzero(open_)
            more = np.where(open_, np.minimum(np.minimum(wanted, self.cycle_s) - shares, part_s), 0)
            shares += more
            left_s -= float(more.sum())
        return shares

    def _process_threads(self, shares: Floats) -> float:
        done, work_s = self._done, self._work_s
        moved = np.minimum(done[:, :-1] - done[:, 1:], shares / work_s)
        done[:, 1:] += moved
        return float((moved * work_s).sum())

    def _process_paths(self, budget_s: float) -> float:
        """Each admitted query on its core: what is under way first, then from the source."""
        rows = np.flatnonzero(self._admitted)
        done, work_s = self._done[rows], self._work_s[rows]
        left_s = np.full(len(rows), budget_s)
        for operator in range(work_s.shape[1], 1, -1):
            each_s = work_s[:, operator - 1]
            ahead = done[:, operator - 1] - done[:, operator]
            moved = np.minimum(ahead, left_s / each_s)
            done[:, operator] += moved
            left_s -= moved * each_s
        path_s = work_s.sum(axis=1)
        moved = np.minimum(done[:, 0] - done[:, 1], left_s / path_s)
        done[:, 1:] += moved[:, None]
        left_s -= moved * path_s
        self._done[rows] = done
        return float(budget_s * len(rows) - left_s.sum())

    def _finish_marks(self, now_s: float, before: Floats, passed: Floats) -> None:
        for place in np.flatnonzero(passed > 0).tolist():
            marks = self._marks[place]
            while marks and marks[0].position <= self._done[place, -1] + FEW:
                mark = marks.popleft()
                share = (mark.position - before[place]) / passed[place]
                at_s = now_s + self.cycle_s * min(1.0, max(0.0, share))
                self.results.append(Result(self._queries[place].name, mark.ended_s, at_s))
                self._passed_s[place] = mark.end_s
                self._fresh[place] = True

    # -- what is seen of it ---------------------------------------------------------------------

    def _live_bytes(self) -> float:
        queued = (self._done[:, :-1] - self._done[:, 1:]) * self._reach
        return float((queued.sum(axis=1) * self._bytes).sum()) + self._state_bytes

    def _note(self, now_s: float, busy_s: float, passed: Floats) -> None:
        events = float((passed[:, 1:] * self._reach).sum()) / self.cycle_s
        busy = busy_s / self.cycle_s + self._collecting * self.slots
        self.usage.append(
            Usage(now_s, self._live_bytes(), min(self.slots, busy), self._collecting, events)
        )

    def _tell(self, places: NDArray[np.intp]) -> None:
        now_s = self.clock.now()
        for place in places.tolist():
            query, state = self._queries[place], self._states[place]
            queued = float(self._done[place, 0] - self._done[place, -1])
            metrics = QueryMetrics(
                batches=state.metrics.batches + 1,
                rows=int(self._done[place, -1]),
                backlog_rows=queued,
                buffered_rows=queued,
                arrival_rate=query.rate,
                batch_fixed_s=NO_TIME_S,
                batch_per_row_s=float(self._work_s[place].sum()),
                batch_empty_s=NO_TIME_S,
                batch_s=self.cycle_s,
                batch_start_s=now_s,
                selectivity=query.rows_out / (query.rate * query.window.slide_s),
                watermark_s=self._passed_s[place],
                next_watermark_s=self._came_s[place],
                state_rows=query.rows_out,
                state_bytes=int(query.state_bytes),
            )
            self._states[place] = replace(
                state,
                phase="waiting" if queued > FEW else "idle",
                since_s=now_s - queued / query.rate,
                admitted_s=now_s - self.cycle_s if self._admitted[place] else state.admitted_s,
                admissions=state.admissions + int(self._admitted[place]),
                metrics=metrics,
            )


def least_cores(queries: Sequence[PipelineQuery]) -> int:
    """Cores that the queries fill if nothing is wasted."""
    return math.ceil(sum(query.rate * float(query.work_s.sum()) for query in queries))
