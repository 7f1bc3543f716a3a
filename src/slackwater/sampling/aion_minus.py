"""Aion without its way around stragglers: samples, but waits for all rows."""

from typing import ClassVar

from slackwater.sampling.base import Sampler
from slackwater.sampling.grid import Grid
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import CellPlan
from slackwater.sampling.promise import Promise


class AionMinus(Sampler):
    """The sample is as large as Aion's, taken from all rows of the window."""

    name: ClassVar[str] = "aion-minus"
    waits_for_all: ClassVar[bool] = True

    def _plan(self, monitor: Monitor, promise: Promise, grid: Grid) -> CellPlan:
        rate = 1 / (1 + monitor.room)
        wait_us, usual = self._largest_delay_us(monitor), self._usual_rows(monitor)
        return CellPlan(wait_us=wait_us, rates=(rate,), usual=usual)
