"""A sweep delay that is distributed as a sample was."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import ceil, exp, log

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slackwater.progress.base import Floats, SweepDelay

_LEAST_MISS = 1e-6  # no interval is asked to miss less often
_TAIL_SHARE = 10  # one in so many samples tells how far the next one may lie beyond the largest


@dataclass(frozen=True, eq=False)
class EmpiricalDelay(SweepDelay):
    """What the next value after a sample may be, when the order of the values says nothing.

    Of n + 1 exchangeable values each is as likely to be the last. So every value of the sample
    has the probability 1 / (n + 1), and as much lies beyond the largest: an exponential tail
    with the mean excess of the largest tenth.

    Parameters
    ----------
    sample
        Ascending, at least one value. See :meth:`of`.
    miss_scale
        How much more often than nominal the intervals may miss; set by an estimator that watches
        how often they do.
    one_sided
        Intervals start at zero, for samples that say more about the latest than the earliest.

    Examples
    --------
    >>> delay = EmpiricalDelay.of([0.03, 0.01, 0.02])
    >>> round(delay.chance(0.02), 3), round(delay.remaining(0.02), 3)
    (0.5, 0.015)
    >>> round(delay.best_wait(1.0), 4), delay.best_wait(0.02)
    (0.0622, 0.0)
    """

    sample: Floats
    miss_scale: float = 1.0
    one_sided: bool = False

    @classmethod
    def of(cls, values: ArrayLike, miss_scale: float = 1.0) -> "EmpiricalDelay":
        """Make it from values in any order."""
        return cls(np.sort(np.asarray(values, dtype=np.float64)), miss_scale)

    @cached_property
    def mean_s(self) -> float:
        size = len(self.sample)
        return (float(self._suffix_sums[0]) + self._top_s + self.tail_s) / (size + 1)

    @cached_property
    def _intervals(self) -> dict[float, tuple[float, float]]:
        """Intervals that were asked for once: they are asked for often."""
        return {}

    @cached_property
    def tail_s(self) -> float:
        """Mean of what the next value exceeds the largest by, if it does."""
        top = max(1, len(self.sample) // _TAIL_SHARE)
        threshold = self.sample[max(0, len(self.sample) - top - 1)]
        return max(0.0, float(np.mean(self.sample[-top:]) - threshold))

    def interval(self, confidence: float) -> tuple[float, float]:
        if confidence not in self._intervals:
            self._intervals[confidence] = self._interval(confidence)
        return self._intervals[confidence]

    def _interval(self, confidence: float) -> tuple[float, float]:
        """Return the shortest range with enough of the sample, which may start at zero.

        With too few values for the confidence it starts at zero and ends in the tail.
        """
        size = len(self.sample)
        miss = min(1.0, max(_LEAST_MISS, (1 - confidence) * self.miss_scale))
        gaps = max(1, ceil((1 - miss) * (size + 1)))  # between neighbours, each 1 / (n + 1)
        # No event arrives before it happens, unless clocks disagree.
        floor = min(0.0, float(self.sample[0]))
        if gaps > size:
            return floor, self._top_s + self.tail_s * max(0.0, -log(miss * (size + 1)))
        ends = np.concatenate(([floor], self.sample))
        widths = ends[gaps:] - ends[: size + 1 - gaps]
        start = 0 if self.one_sided else int(np.argmin(widths))
        return float(ends[start]), float(ends[start + gaps])

    def chance(self, elapsed_s: float) -> float:
        size = len(self.sample)
        beyond = elapsed_s - self._top_s
        if beyond < 0:
            return int(np.searchsorted(self.sample, elapsed_s, side="right")) / (size + 1)
        return 1.0 - self._tail_left(beyond) / (size + 1)

    def remaining(self, elapsed_s: float) -> float:
        passed = int(np.searchsorted(self.sample, elapsed_s, side="right"))
        above = len(self.sample) - passed
        excess = float(self._suffix_sums[passed]) - above * elapsed_s
        beyond = max(0.0, self._top_s - elapsed_s) + self.tail_s
        return max(0.0, excess + beyond) / (above + 1)

    def best_wait(self, waste_s: float) -> float:
        waits = np.concatenate(([0.0], self.sample[self.sample > 0], self._wait_in_tail(waste_s)))
        late = 1 - np.searchsorted(self.sample, waits, side="right") / (len(self.sample) + 1)
        beyond = waits >= self._top_s
        late[beyond] = [1 - self.chance(wait) for wait in waits[beyond].tolist()]
        return float(waits[int(np.argmin(waits + late * waste_s))])

    def knots(self, count: int) -> tuple[Floats, Floats]:
        elapsed = self.sample[_ranks(len(self.sample), count)]
        passed = np.searchsorted(self.sample, elapsed, side="right")
        beyond = self._top_s + self.tail_s
        expected = (self._suffix_sums[passed] + beyond) / (len(self.sample) - passed + 1)
        expected[0] = self.mean_s
        return elapsed, expected

    @property
    def _top_s(self) -> float:
        return float(self.sample[-1])

    @cached_property
    def _suffix_sums(self) -> Floats:
        """The sum of all but the k smallest values, by k."""
        return np.concatenate((np.cumsum(self.sample[::-1])[::-1], [0.0]))

    def _tail_left(self, beyond_s: float) -> float:
        return exp(-beyond_s / self.tail_s) if self.tail_s > 0 else 0.0

    def _wait_in_tail(self, waste_s: float) -> list[float]:
        """Return where the tail's density has come down to 1 / waste, if that is in the tail."""
        weight_s = (len(self.sample) + 1) * self.tail_s
        if weight_s <= 0 or waste_s <= weight_s:
            return []
        wait = self._top_s + self.tail_s * log(waste_s / weight_s)
        return [wait] if wait > 0 else []


@lru_cache(maxsize=1024)
def _ranks(size: int, count: int) -> NDArray[np.intp]:
    """Return ranks of knots: even, and denser towards the largest, which lie far apart.

    >>> _ranks(400, 8).tolist()
    [0, 80, 160, 239, 319, 332, 398, 399]
    """
    dense = count // 3
    even = np.linspace(0, size - 1, count - dense)
    last = size - 1 - np.geomspace(1, max(1.0, size / (count - dense)), dense)
    ranks = np.sort(np.concatenate((even, np.maximum(last, 0))))
    return ranks.round().astype(np.intp)
