"""How fast rows arrive at a source, also while it is behind."""

import math
from collections import deque

import numpy as np

from slackwater.core.errors import UsageError

SURE = 4.0  # standard deviations of a count that are no chance any more
LEAST_CHANGE = 0.1  # and a relative change below this is left to the regression


class SourceRate:
    """Rows that arrive per second: the slope of all that has arrived, over the last seconds.

    What has arrived is what was read and what waits, so the slope is the change of the lag plus
    the consumption: it does not matter how far behind the reader is. When the newest stretch does
    not fit the slope, the older ones are forgotten.

    Parameters
    ----------
    window_s
        How far back is looked while the rate does not change.

    Examples
    --------
    >>> rate = SourceRate()
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
        """Take what had arrived at a time; times do not go back."""
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
