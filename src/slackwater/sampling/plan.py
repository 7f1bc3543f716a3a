"""How the rows of a cell are sampled, weighed and waited for."""

from dataclasses import dataclass, replace
from typing import Any

from slackwater.sampling.grid import Grid

ANY_NUMBER = (0.0, 1e18)
NO_NUMBER = (1e18, 0.0)  # for windows of which nothing can be promised


@dataclass(frozen=True)
class CellPlan:
    """Holds for a whole cell, so that all its rows are weighed alike.

    The tuples have one value for each sub-stream, counted back from the end of the cell (rates)
    or of the window (shares, doubts).
    """

    wait_us: int = 0  # rows that arrive until so long after a window's end count for it
    rates: tuple[float, ...] = (1.0,)  # theta: probability that a row is kept; the last goes on
    shares: tuple[float, ...] = ()  # expected to have arrived when the window closes; then 1
    doubts: tuple[float, ...] = ()  # relative standard deviations of those; then 0
    usual: tuple[float, float] = ANY_NUMBER  # rows of a window that raise no suspicion

    def numbers(self) -> list[Any]:
        """Return it for JSON."""
        tuples = (self.rates, self.shares, self.doubts, self.usual)
        return [self.wait_us, *(list(each) for each in tuples)]

    @classmethod
    def of_numbers(cls, numbers: list[Any]) -> "CellPlan":
        wait_us, rates, shares, doubts, (low, high) = numbers
        return cls(int(wait_us), tuple(rates), tuple(shares), tuple(doubts), (low, high))


@dataclass(frozen=True)
class Plan:
    """What a sampler wants of a source from the next cell on."""

    grid: Grid
    cell: CellPlan
    safe_wait_us: int  # so long that practically all rows have arrived
    until_s: float | None = None  # not to be followed after this time; None: for ever

    def at(self, now_s: float) -> "Plan":
        """Return this plan, or an exact one if its maker has not been heard of for too long."""
        if self.until_s is None or now_s < self.until_s:
            return self
        return replace(self, cell=CellPlan(wait_us=self.safe_wait_us, usual=self.cell.usual))
