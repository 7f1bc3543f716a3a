"""Micro-batches in virtual time."""

import heapq
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from slackwater.core.clock import VirtualClock
from slackwater.core.errors import EngineError, UsageError
from slackwater.core.model import Phase, QueryMetrics, QueryState, Schedule, Snapshot
from slackwater.engines.simulator.admitting import refuse_not_waiting
from slackwater.engines.simulator.cores import Cores
from slackwater.engines.simulator.query import POLL_S, Execution, Result, SimulatedQuery

Event = Literal["arrive", "look", "end"]
BESIDE = ""  # no query's name: work that nobody waits for

# When a batch that only waits for its sink is seen to, as on Spark (`gates/sinks.py`): after its
# last work.
IN_SINK_S = 1.5


class MicroBatchEngine:
    """Driver and enforcer of simulated queries: they come to the gate, run a batch, come again.

    Parameters
    ----------
    clock
        Moved by :meth:`wait`.
    queries
        They come to the gate when their traffic starts.
    cores
        Shared evenly by all batches that run.
    driver_cores
        Of the driver where it has a machine of its own; the driver's share of every batch's work
        is done there, before the rest. None: on the same cores.
    slots
        C: micro-batches admitted at once.
    gated
        False: nobody is held, as on plain Spark.
    logged
        Keep a log of who entered which phase when; of very many queries it becomes long.
    """

    def __init__(
        self,
        clock: VirtualClock,
        queries: Sequence[SimulatedQuery],
        *,
        cores: float = 2,
        driver_cores: float | None = None,
        slots: int = 3,
        gated: bool = True,
        logged: bool = True,
    ) -> None:
        if len({query.name for query in queries}) < len(queries):
            raise UsageError("two queries have the same name")
        self.clock = clock
        self.slots = slots
        self.gated = gated
        self.cores = Cores(cores)
        self.driver = Cores(driver_cores) if driver_cores is not None else None
        self._remaining_s: dict[str, float] = {}  # work that follows the driver's
        self.results: list[Result] = []
        self.log: list[tuple[float, str, str]] = []  # when, who, what
        self._logged = logged
        self._longest_wait_s = 0.0
        if not gated:  # then nobody raises a watermark either
            queries = [replace(query, one_batch=False) for query in queries]
        self._executions = {query.name: Execution(query) for query in queries}
        self._states = {query.name: QueryState(query.spec) for query in queries}
        self._fruitless: set[str] = set()  # those whose look found nothing
        self._events: list[tuple[float, int, Event, str]] = []
        self._changed = False  # some query, since the last wait began
        self._running = 0
        self._number = 0  # keeps the order of equals
        for query in queries:
            self._later(query.traffic.start_s, "arrive", query.name)

    @property
    def longest_wait_s(self) -> float:
        """The longest wait of any query at the gate so far."""
        now_s = self.clock.now()
        waits_s = (state.waited_s(now_s) for state in self._states.values())
        return max(self._longest_wait_s, max(waits_s, default=0.0))

    def executions(self) -> dict[str, Execution]:
        """Return how far each query is, by name."""
        return self._executions

    def durations(self) -> list[tuple[int, float]]:
        """Return rows and seconds of all batches that ran."""
        return [one for found in self._executions.values() for one in found.durations]

    # -- driver ---------------------------------------------------------------------------------

    def collect(self, now_s: float) -> Snapshot:
        return Snapshot(now_s, self.slots, tuple(self._states.values()))

    def wait(self, until_s: float) -> None:
        """Go on until a query has changed: of work that ends in between, nobody need hear."""
        self._changed = False
        while not self._changed and self.clock.now() < until_s:
            self._step(until_s)

    def _step(self, until_s: float) -> None:
        next_s = min(self._events[0][0] if self._events else math.inf, self.cores.next_end_s())
        if self.driver is not None:
            next_s = min(next_s, self.driver.next_end_s())
        self.clock.advance_to(max(self.clock.now(), min(next_s, until_s)))
        now_s = self.clock.now()
        for name in self.driver.ended(now_s) if self.driver is not None else ():
            self.cores.start(name, self._remaining_s.pop(name), now_s)
        for name in self.cores.ended(now_s):
            if name != BESIDE:
                self._end_work(name, now_s)
        while self._events and self._events[0][0] <= now_s:
            _, _, what, name = heapq.heappop(self._events)
            if what == "arrive":
                self._arrive(name)
            elif what == "look":
                self._look_at_sink(name)
            else:
                self._end(name)

    # -- enforcer -------------------------------------------------------------------------------

    def enforce(self, schedule: Schedule) -> None:
        for admission in schedule.admissions:
            refuse_not_waiting(admission.query, self._states.get(admission.query))
            self._admit(admission.query, admission.row_limit, admission.watermark_s)

    # -- what happens ---------------------------------------------------------------------------

    def _arrive(self, name: str) -> None:
        self._enter(name, "waiting", metrics=self._executions[name].observer.metrics)
        if not self.gated:
            self._admit(name, None)

    def _admit(self, name: str, row_limit: int | None, watermark_s: float | None = None) -> None:
        now_s, state = self.clock.now(), self._states[name]
        self._longest_wait_s = max(self._longest_wait_s, state.waited_s(now_s))
        self._running += 1
        if self.gated and self._running > self.slots:
            raise EngineError(f"{self._running} batches at once, only {self.slots} allowed")
        self._enter(name, "running", admitted_s=now_s)
        work_s = self._executions[name].begin(now_s, row_limit, watermark_s)
        if work_s is None:
            self._fruitless.add(name)
            work_s = self._query(name).costs.poll_s
        if beside := self._query(name).costs.beside:
            self.cores.start(BESIDE, work_s * beside, now_s)
        if self.driver is None:
            self.cores.start(name, work_s, now_s)
        else:
            share = self._query(name).costs.driver
            self._remaining_s[name] = work_s * (1 - share)
            self.driver.start(name, work_s * share, now_s)

    def _end_work(self, name: str, now_s: float) -> None:
        waiting_s = 0.0 if name in self._fruitless else self._query(name).costs.waiting_s
        self._later(now_s + waiting_s, "end", name)
        if self.gated and waiting_s > IN_SINK_S:
            self._later(now_s + IN_SINK_S, "look", name)

    def _look_at_sink(self, name: str) -> None:
        """Have a batch that only waits give its slot back."""
        self._running -= 1
        self._states[name] = replace(self._states[name], in_sink=True)
        self._changed = True

    def _end(self, name: str) -> None:
        now_s = self.clock.now()
        again_s = now_s
        if name in self._fruitless:
            self._fruitless.discard(name)
            again_s = now_s + POLL_S
        else:
            self.results += self._executions[name].end(now_s)
        trigger_s, start_s = self._query(name).trigger_s, self._states[name].since_s
        if trigger_s is not None:  # who took longer than that goes on at once
            again_s = max(again_s, (start_s // trigger_s + 1) * trigger_s)
        self._running -= not self._states[name].in_sink
        self._enter(name, "idle")
        self._later(again_s, "arrive", name)

    def _query(self, name: str) -> SimulatedQuery:
        return self._executions[name].query

    def _enter(
        self,
        name: str,
        phase: Phase,
        *,
        admitted_s: float | None = None,
        metrics: QueryMetrics | None = None,
    ) -> None:
        """Move a query on; by hand, because `replace` takes ten times as long."""
        now_s, old = self.clock.now(), self._states[name]
        self._changed = True
        self._states[name] = QueryState(
            old.spec,
            phase,
            now_s,
            old.admitted_s if admitted_s is None else admitted_s,
            old.admissions + (admitted_s is not None),
            old.metrics if metrics is None else metrics,
        )
        if self._logged:
            self.log.append((round(now_s, 6), name, phase))

    def _later(self, at_s: float, what: Event, name: str) -> None:
        self._number += 1
        heapq.heappush(self._events, (at_s, self._number, what, name))
