"""A virtual machine that has just started runs slowly: its code is not compiled yet."""

from dataclasses import dataclass
from math import exp


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Costs are ``cold`` times as high in the beginning and settle.

    >>> warm_up = WarmUp(cold=5.0, settles_s=10.0)
    >>> warm_up.factor(0.0), round(warm_up.factor(60.0), 2)
    (5.0, 1.01)
    """

    cold: float = 10.0
    settles_s: float = 15.0

    def factor(self, age_s: float) -> float:
        return 1.0 + (self.cold - 1.0) * exp(-age_s / self.settles_s)
