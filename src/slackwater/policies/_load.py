"""What a fleet takes of its slots, and what is left for work without a deadline."""

from collections.abc import Iterable
from typing import NamedTuple

SPENT = 0.8  # of all slots: what work without a promise may take together with all promises
LEAST = 0.1  # and what it gets however many promises there are
LOOKING = 0.02  # of all slots: what looks at silent sources may take
CHECKING = 0.005  # and at those that have told that nothing came: they may be wrong
CHECK_S = 30.0  # between two looks at such a one, at least
REFRESH_S = 0.25  # between two batches of a query without a promise, at least
LONGEST_S = 60.0  # and at most


class Demand(NamedTuple):
    """What one query takes."""

    cost_s: float
    every_s: float | None  # None: as often as there is room
    weight: float = 1.0
    silent: bool = False  # its looks have found nothing for a while
    told: bool = False  # and its source says that there is nothing


class Load:
    """Divides what deadlines leave among queries that have none.

    >>> load = Load()
    >>> load.measure([Demand(0.5, 1.0), Demand(0.3, None, 2.0), Demand(0.3, None)], slots=3)
    >>> round(load.refresh_s(0.3, weight=1.0), 2), round(load.refresh_s(0.3, weight=2.0), 2)
    (0.47, 0.3)
    """

    def __init__(self) -> None:
        self._left = 1.0  # slots
        self._weights = 1.0
        self.look_s = 0.0  # between two looks at a silent source
        self.check_s = CHECK_S  # and at one that says that it is

    def measure(self, demands: Iterable[Demand], slots: int) -> None:
        """Take what all queries need."""
        promised = weights = looks_s = checks_s = 0.0
        for demand in demands:
            if demand.told:
                checks_s += demand.cost_s
            elif demand.silent:
                looks_s += demand.cost_s
            elif demand.every_s is not None:
                promised += demand.cost_s / max(demand.every_s, demand.cost_s)
            else:
                weights += demand.weight
        self._left = max(LEAST * slots, SPENT * slots - promised)
        self._weights = weights
        self.look_s = looks_s / (LOOKING * slots)
        self.check_s = max(CHECK_S, checks_s / (CHECKING * slots))

    def refresh_s(self, cost_s: float, weight: float) -> float:
        """Return how long after a batch the next one begins, where no promise says it."""
        fair_s = cost_s * self._weights / (max(weight, 1e-3) * self._left)
        return min(LONGEST_S, max(REFRESH_S, cost_s, fair_s))
