"""The planner of an approximate query: listens to its progress, writes plans for its source."""

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from slackwater.core.clock import RealClock
from slackwater.core.protocols import Clock
from slackwater.sampling import Grid, Monitor, Plan, Promise, Sampler
from slackwater.sampling.plan import NO_NUMBER

log = logging.getLogger("slackwater.planner")

TELLING_S = 0.01  # a change of the wait that a scheduler should know of
RENEW_S = 10.0  # at the latest, so that it does not run out
PLAN_LASTS_S = 60.0  # without a word from its planner a source goes back to exact results


Follow = Callable[[Plan | None], None]  # tells who samples the rows of a query; None: exact


class Planner:
    """Collects what a query reports, and decides by its sampler.

    Parameters
    ----------
    name
        Of its observations in Spark's progress: ``name.input`` and ``name.result``.
    follow
        Called with every new plan, and with None in the end.
    sampler, promise, grid
        How it is to be sampled, and what for.
    """

    def __init__(
        self,
        name: str,
        follow: Follow,
        sampler: Sampler,
        promise: Promise,
        grid: Grid,
        clock: Clock = RealClock(),
    ) -> None:
        self.name = name
        self._clock = clock
        self._follow = follow
        self.sampler = sampler
        self.promise = promise
        self.grid = grid
        self.monitor = Monitor()
        self.cpu_s = 0.0  # spent here so far
        self.on_wait: Callable[[str, float], None] = lambda query, wait_s: None
        self.keeps_waits: Callable[[], bool] = lambda: True  # else nothing can be promised
        self._told_s = -1.0  # the wait that was last told
        self._told_at_s = 0.0
        self._renewed_s = 0.0
        self.plan = self._renew()

    def close(self) -> None:
        """Take the plan away: its source is exact again, and free for another query."""
        self._follow(None)

    def take(self, query: str, progress: dict[str, Any]) -> None:
        """Learn from a progress event of any query; tell ``on_wait`` when the wait has changed."""
        observed = progress.get("observedMetrics") or {}
        if f"{self.name}.input" not in observed:
            return
        started_s = time.thread_time()
        try:
            closed = self._learn(
                observed[f"{self.name}.input"], observed.get(f"{self.name}.result") or {}
            )
            untold = self._told_s < 0
            if closed or untold or self._clock.now() > self._renewed_s + RENEW_S:
                self._plan_anew(query)
        except Exception:  # the query goes on with the plan it has
            log.exception("no new plan for %s", self.name)
        self.cpu_s += time.thread_time() - started_s

    def _plan_anew(self, query: str) -> None:
        self.plan = self._renew()
        wait_s = self.plan.cell.wait_us / 1e6
        now_s = self._clock.now()  # told again now and then: others describe the query too
        if abs(wait_s - self._told_s) > TELLING_S or now_s > self._told_at_s + RENEW_S:
            self.on_wait(query, wait_s)
            self._told_s, self._told_at_s = wait_s, now_s

    def _learn(self, seen: dict[str, Any], result: dict[str, Any]) -> bool:
        """Learn what a micro-batch tells; return whether a window came out."""
        if seen.get("rows"):
            quantiles_s = np.array(seen["delays"], dtype=np.float64)
            self.monitor.delays.add(quantiles_s, float(seen["rows"]), float(seen["largest"]))
        if result.get("room") is None:
            return False
        windows = max(int(result["windows"]), 1)
        self.monitor.close_window(float(result["room"]), float(result["total"]) / windows)
        return True

    def _renew(self) -> Plan:
        plan = self.sampler.plan(self.monitor, self.promise, self.grid)
        if not self.keeps_waits():
            plan = replace(plan, cell=replace(plan.cell, usual=NO_NUMBER))
        plan = replace(plan, until_s=self._clock.now() + PLAN_LASTS_S)
        self._follow(plan)
        self._renewed_s = self._clock.now()
        return plan
