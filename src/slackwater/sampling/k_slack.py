"""K-Slack: no sampling, and wait for the largest delay seen."""

from typing import ClassVar

from slackwater.sampling.base import Sampler
from slackwater.sampling.grid import Grid
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import CellPlan
from slackwater.sampling.promise import Promise


class KSlack(Sampler):
    """Every row is looked at, and windows close once the slowest can have arrived.

    References
    ----------
    Mutschler and Philippsen, *Distributed low-latency out-of-order event processing for high data
    rate sensor streams*, IPDPS 2013.
    """

    name: ClassVar[str] = "k-slack"
    waits_for_all: ClassVar[bool] = True

    def _plan(self, monitor: Monitor, promise: Promise, grid: Grid) -> CellPlan:
        usual = self._usual_rows(monitor)
        return CellPlan(wait_us=self._largest_delay_us(monitor), usual=usual)
