"""A small engine in virtual time: queries that arrive at a gate, run a batch, and come again.

It is driver and enforcer in one, as the real server is, and records what happened as a log.
"""

import heapq
import random
from dataclasses import replace

from slackwater.core import Admission, QuerySpec, QueryState, Schedule, Snapshot, VirtualClock


class ToyEngine:
    def __init__(
        self,
        clock: VirtualClock,
        specs: list[QuerySpec],
        slots: int,
        seed: int = 0,
        batch_s: float = 0.2,
    ) -> None:
        self.clock = clock
        self.slots = slots
        self.batch_s = batch_s
        self.states = {spec.name: QueryState(spec) for spec in specs}
        self.log: list[tuple[float, str, str]] = []
        self.longest_wait_s: dict[str, float] = dict.fromkeys(self.states, 0.0)
        self._chance = random.Random(seed)
        self._due: list[tuple[float, str, str]] = []
        for name in self.states:
            self._later(self._chance.uniform(0, 0.1), "arrive", name)

    def collect(self, now_s: float) -> Snapshot:
        return Snapshot(now_s, self.slots, tuple(self.states.values()))

    def wait(self, until_s: float) -> None:
        if self._due and self._due[0][0] <= until_s:
            at_s, what, name = heapq.heappop(self._due)
            self.clock.advance_to(max(at_s, self.clock.now()))
            phase = "waiting" if what == "arrive" else "idle"
            self._enter(name, phase)
            if what == "done":
                self._later(self._chance.uniform(0, 0.05), "arrive", name)
        else:
            self.clock.advance_to(until_s)

    def enforce(self, schedule: Schedule) -> None:
        for admission in schedule.admissions:
            self._admit(admission)

    def _admit(self, admission: Admission) -> None:
        name, now_s = admission.query, self.clock.now()
        state = self.states[name]
        assert state.phase == "waiting", f"{name} was admitted while {state.phase}"
        self.longest_wait_s[name] = max(self.longest_wait_s[name], state.waited_s(now_s))
        self._enter(name, "running")
        running = sum(s.phase == "running" for s in self.states.values())
        assert running <= self.slots, f"{running} batches at once, only {self.slots} allowed"
        self._later(self.batch_s * self._chance.uniform(0.5, 1.5), "done", name)

    def _enter(self, name: str, phase: str) -> None:
        now_s = self.clock.now()
        self.states[name] = replace(self.states[name], phase=phase, since_s=now_s)
        self.log.append((round(now_s, 6), name, phase))

    def _later(self, delay_s: float, what: str, name: str) -> None:
        heapq.heappush(self._due, (self.clock.now() + delay_s, what, name))
