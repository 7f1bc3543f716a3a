"""The planner of one approximate query: listens to its progress, and writes plans for its source."""

import logging
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from slackwater.engines.spark.sampled_rows import write_plan
from slackwater.sampling import Grid, Monitor, Plan, Promise, Sampler

log = logging.getLogger("slackwater.planner")

PLAN_LASTS_S = 60.0  # without a word from its planner a source goes back to exact results


class Planner:
    """Collects what a query reports, and decides by its sampler.

    Parameters
    ----------
    name
        Of its observations in Spark's progress: ``name.input`` and ``name.result``.
    path
        Where its source looks for a plan.
    """

    def __init__(
        self, name: str, path: Path, sampler: Sampler, promise: Promise, grid: Grid
    ) -> None:
        self.name = name
        self.path = path
        self.sampler = sampler
        self.promise = promise
        self.grid = grid
        self.monitor = Monitor()
        self.cpu_s = 0.0  # spent here so far
        self.plan = self._write()

    def take(self, _query: str, progress: dict[str, Any]) -> None:
        """One progress event of any query."""
        observed = progress.get("observedMetrics") or {}
        if f"{self.name}.input" not in observed:
            return
        started_s = time.thread_time()
        try:
            self._learn(observed[f"{self.name}.input"], observed.get(f"{self.name}.result") or {})
            self.plan = self._write()
        except Exception:  # the query goes on with the plan it has
            log.exception("no new plan for %s", self.name)
        self.cpu_s += time.thread_time() - started_s

    def _learn(self, seen: dict[str, Any], result: dict[str, Any]) -> None:
        if seen.get("rows"):
            quantiles_s = np.array(seen["delays"], dtype=np.float64)
            self.monitor.delays.add(quantiles_s, float(seen["arrived"]), float(seen["largest"]))
        if result.get("room") is not None:
            windows = max(int(result["windows"]), 1)
            self.monitor.close_window(float(result["room"]), float(result["total"]) / windows)

    def _write(self) -> Plan:
        plan = self.sampler.plan(self.monitor, self.promise, self.grid)
        plan = replace(plan, until_s=time.time() + PLAN_LASTS_S)
        write_plan(self.path, plan)
        return plan
