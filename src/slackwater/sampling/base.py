"""What all samplers share: a careful beginning, and the limits of waiting."""

from abc import ABC, abstractmethod
from typing import ClassVar

from slackwater.core.errors import UsageError
from slackwater.sampling.grid import Grid
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import NO_NUMBER, CellPlan, Plan
from slackwater.sampling.promise import Promise


class Sampler(ABC):
    """Plans how much of a stream is looked at and how long stragglers are waited for.

    A member writes :meth:`_plan`.

    Parameters
    ----------
    first_wait_s
        How long stragglers are waited for while nothing is known of delays.
    max_wait_s
        And at most, whatever is known.
    """

    name: ClassVar[str] = ""  # as users write it
    waits_for_all: ClassVar[bool] = False  # or else its results are wrong
    MAX_WAIT_S: ClassVar[float] = 30.0

    def __init__(self, first_wait_s: float = 2.0, max_wait_s: float = MAX_WAIT_S) -> None:
        if not 0 <= first_wait_s <= max_wait_s:
            raise UsageError("a sampler needs 0 <= first_wait_s <= max_wait_s")
        self.first_wait_s = first_wait_s
        self.max_wait_s = max_wait_s

    def plan(self, monitor: Monitor, promise: Promise, grid: Grid) -> Plan:
        """Plan the next cells."""
        safe_s = max(self.first_wait_s, min(self.max_wait_s, 1.5 * monitor.delays.largest_s))
        cell = CellPlan(wait_us=_us(safe_s), usual=NO_NUMBER)
        if monitor.known:
            cell = self._plan(monitor, promise, grid)
        return Plan(grid, cell, _us(safe_s))

    @abstractmethod
    def _plan(self, monitor: Monitor, promise: Promise, grid: Grid) -> CellPlan:
        """Plan when there is something to plan by."""

    def _usual_rows(self, monitor: Monitor) -> tuple[float, float]:
        """Return the usual rows of a sampler that lets no row be late, as far as it can wait."""
        can_wait = monitor.delays.largest_s <= self.max_wait_s
        return monitor.usual_rows if can_wait else NO_NUMBER

    def _largest_delay_us(self, monitor: Monitor) -> int:
        """Return K: the largest delay seen so far."""
        return _us(min(monitor.delays.largest_s, self.max_wait_s))


def _us(seconds: float) -> int:
    return round(seconds * 1e6)
