"""How fast rows arrive, from counts of all that have arrived so far."""

import math
from collections import deque

import numpy as np

from slackwater.core.errors import UsageError
from slackwater.statistics.online import Smoothed

SURE = 4.0  # standard deviations of a count that are no chance any more
LEAST_CHANGE = 0.1  # and a relative change below this is left to the regression


class CounterRate:
    """Change of a counter in a second, since the look before.

    Parameters
    ----------
    weight
        Of the newest change; 1: only it counts.
    restarts
        Whether a count that is less than the one before means that the counter was started anew,
        and the rate is not known then. Otherwise it is an estimate that was corrected, such as the
        rows of a batch and those that were seen to wait.

    Examples
    --------
    >>> rate = CounterRate()
    >>> [rate.update(at_s, count) for at_s, count in ((0.0, 5), (2.0, 25), (3.0, 0), (4.0, 7))]
    [None, 10.0, None, 7.0]
    """

    def __init__(self, weight: float = 1.0, restarts: bool = True) -> None:
        self._weight = weight
        self._restarts = restarts
        self._smoothed = Smoothed(weight)
        self._last: tuple[float, float] | None = None  # when, and the count

    @property
    def value(self) -> float | None:
        return self._smoothed.value

    def update(self, at_s: float, count: float) -> float | None:
        """Take a count and return the rate; two looks at one moment leave it as it is."""
        if self._last is not None and at_s > self._last[0]:
            then_s, before = self._last
            if count >= before or not self._restarts:
                self._smoothed.update((count - before) / (at_s - then_s))
            else:
                self._smoothed = Smoothed(self._weight)
        self._last = (at_s, count)
        return self.value


class ArrivalRate:
    """Rows that arrive per second: the slope of all that has arrived, over the last seconds.

    What has arrived is what was read and what waits, so the slope is the change of the lag plus
    the consumption: it does not matter how far behind the reader is. When the newest stretch does
    not fit the slope, the older ones are forgotten. For decisions on overload, where the mean of
    :class:`CounterRate` would follow a step too slowly and a single change would be noise.

    Parameters
    ----------
    window_s
        How far back is looked while the rate does not change.

    Examples
    --------
    >>> rate = ArrivalRate()
    >>> [rate.update(at_s, rows) for at_s, rows in ((0.0, 0), (1.0, 100), (2.0, 200))]
    [None, 100.0, 100.0]
    >>> rate.update(3.0, 500)
    300.0
    """

    def __init__(self, window_s: float = 5.0) -> None:
        if not window_s > 0:
            raise UsageError(f"window_s must be positive, not {window_s:g}")
        self.window_s = window_s
        self.value: float | None = None
        self._seen: deque[tuple[float, float]] = deque()  # when, rows arrived in all

    def update(self, at_s: float, arrived: float) -> float | None:
        """Take what had arrived at a time and return the rate; times do not go back."""
        if self._seen and at_s <= self._seen[-1][0]:
            return self.value
        if self._changed(at_s, arrived):
            while len(self._seen) > 1:
                self._seen.popleft()
        self._seen.append((at_s, arrived))
        while len(self._seen) > 3 and self._seen[1][0] <= at_s - self.window_s:
            self._seen.popleft()
        self.value = self._slope()
        return self.value

    def _changed(self, at_s: float, arrived: float) -> bool:
        if self.value is None:
            return False
        then_s, before = self._seen[-1]
        expected = self.value * (at_s - then_s)
        off = abs(arrived - before - expected)
        return off > max(SURE * math.sqrt(max(expected, 1.0)), LEAST_CHANGE * expected)

    def _slope(self) -> float | None:
        if len(self._seen) < 2:
            return self.value
        times, rows = np.array(self._seen).T
        centred = times - times.mean()
        return float(centred @ (rows - rows.mean()) / (centred @ centred))
