"""A normally distributed sweep delay."""

from dataclasses import dataclass, field
from math import log, pi, sqrt

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erfcx, ndtr, ndtri

from slackwater.progress.base import Floats, SweepDelay

CERTAIN_S = 1e-12  # smaller deviations are lost in the rounding of times

_FAR = 200.0  # from here on the difference below loses more digits than the series


def mean_excess(z: ArrayLike) -> Floats:
    """Return ``E[Z - z | Z > z]`` of a standard normal Z: the inverse Mills ratio minus z.

    The ratio of density and tail is taken from erfcx, which neither over- nor underflows where
    it matters; far out the difference cancels and its asymptotic series takes over.

    >>> float(mean_excess(0.0).round(6))
    0.797885
    >>> float(mean_excess(1e12))
    1e-12
    """
    z = np.asarray(z, dtype=np.float64)
    near = np.minimum(z, _FAR)
    direct = sqrt(2 / pi) / erfcx(near / sqrt(2)) - near
    far = np.maximum(z, _FAR)
    series = (1 - 2 / far**2 + 10 / far**4) / far
    excess: Floats = np.where(z > _FAR, series, direct)
    return excess


@dataclass(frozen=True, slots=True)
class NormalDelay(SweepDelay):
    """Normal with the given mean and deviation; without a deviation the delay is certain.

    >>> delay = NormalDelay(0.15, 0.05)
    >>> round(delay.remaining(0.15), 4)
    0.0399
    >>> [round(end, 3) for end in delay.interval(0.95)]
    [0.052, 0.248]
    """

    mean_s: float = field()  # else the property of the base would be taken for its default
    std_s: float

    def interval(self, confidence: float) -> tuple[float, float]:
        reach = self.std_s * float(ndtri((1 + confidence) / 2))
        return self.mean_s - reach, self.mean_s + reach

    def chance(self, elapsed_s: float) -> float:
        if self.std_s <= CERTAIN_S:
            return 1.0 if elapsed_s >= self.mean_s else 0.0
        return float(ndtr((elapsed_s - self.mean_s) / self.std_s))

    def remaining(self, elapsed_s: float) -> float:
        if self.std_s <= CERTAIN_S:
            return max(0.0, self.mean_s - elapsed_s)
        return self.std_s * float(mean_excess((elapsed_s - self.mean_s) / self.std_s))

    def best_wait(self, waste_s: float) -> float:
        # The cost falls while the density is above 1 / waste: its least value right of the mean
        # is where the density comes down to that, unless not waiting at all is cheaper.
        wait = self.mean_s
        if self.std_s > CERTAIN_S:
            peak = waste_s / (self.std_s * sqrt(2 * pi))
            if peak <= 1:
                return 0.0
            wait += self.std_s * sqrt(2 * log(peak))
        if wait <= 0:
            return 0.0
        late = 1 - self.chance(wait)
        return wait if wait + late * waste_s < (1 - self.chance(0.0)) * waste_s else 0.0
