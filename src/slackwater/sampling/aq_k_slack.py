"""AQ-K-Slack: wait as long as the error that late rows leave is too large."""

from typing import ClassVar

from slackwater.sampling.base import Sampler
from slackwater.sampling.delays import least_wait_s
from slackwater.sampling.grid import Grid
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import CellPlan
from slackwater.sampling.promise import Promise

LATE_SHARE = 0.5  # of the error is left to rows that are late, the rest to sampling


class AqKSlack(Sampler):
    """Late rows count as lost: nothing is corrected for them, so the wait must make them few.

    The sample size comes from the error of a sum alone, as if the window had no end: it does not
    profit from the sample being a large part of it.

    References
    ----------
    Ji et al., *Quality-driven processing of sliding window aggregates over out-of-order data
    streams*, DEBS 2015.
    """

    name: ClassVar[str] = "aq-k-slack"

    def _plan(self, monitor: Monitor, promise: Promise, grid: Grid) -> CellPlan:
        allowed = promise.error * LATE_SHARE
        wait_s = least_wait_s(
            lambda wait_s: self._late_share(monitor, grid, wait_s) <= allowed,
            min(monitor.delays.largest_s, self.max_wait_s),
        )
        room = monitor.room * (1 - LATE_SHARE) ** 2  # an error smaller by this factor
        late = self._late_share(monitor, grid, wait_s)
        return CellPlan(
            wait_us=round(wait_s * 1e6),
            rates=(min(1.0, 1 / room),),
            doubts=(late / promise.z,) * grid.substreams,
            usual=monitor.usual_rows,
        )

    def _late_share(self, monitor: Monitor, grid: Grid, wait_s: float) -> float:
        shares = monitor.delays.arrived_shares(wait_s, grid.substream_us / 1e6, grid.substreams)
        return float(1 - shares.mean())
