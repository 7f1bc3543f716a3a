"""The newest values of a stream, in the order of time and in the order of size."""

from bisect import bisect_left, insort
from collections import deque
from itertools import islice

import numpy as np

from slackwater.progress.base import Floats


class RecentSample:
    """The last ``capacity`` values.

    Adding one shifts a part of a list of constant length: constant time, however long the stream
    is. Lists, because values come one by one and seldom: each whole-array operation would cost
    more than the shift.

    >>> sample = RecentSample(3)
    >>> for value in (5.0, 1.0, 4.0, 2.0):
    ...     sample.add(value)
    >>> sample.ascending.tolist(), sample.newest(2).tolist()
    ([1.0, 2.0, 4.0], [4.0, 2.0])
    """

    def __init__(self, capacity: int) -> None:
        self._by_time: deque[float] = deque(maxlen=capacity)
        self._by_size: list[float] = []

    def __len__(self) -> int:
        return len(self._by_size)

    @property
    def ascending(self) -> Floats:
        """A copy, smallest first."""
        return np.array(self._by_size)

    def newest(self, count: int) -> Floats:
        """Return a copy of the last values, oldest of them first."""
        first = max(0, len(self._by_time) - count)
        return np.array(list(islice(self._by_time, first, None)))

    def add(self, value: float) -> None:
        if len(self._by_time) == self._by_time.maxlen:
            del self._by_size[bisect_left(self._by_size, self._by_time[0])]
        self._by_time.append(value)
        insort(self._by_size, value)

    def keep_newest(self, count: int) -> None:
        """Forget all but the last ``count`` values."""
        while len(self._by_time) > count:
            self._by_time.popleft()
        self._by_size = sorted(self._by_time)
