"""The newest values of a stream, in the order of time and in the order of size."""

import numpy as np

from slackwater.progress.base import Floats


class RecentSample:
    """The last ``capacity`` values.

    Adding one shifts a part of an array of constant length: constant time, however long the
    stream is.

    >>> sample = RecentSample(3)
    >>> for value in (5.0, 1.0, 4.0, 2.0):
    ...     sample.add(value)
    >>> sample.ascending.tolist(), sample.newest(2).tolist()
    ([1.0, 2.0, 4.0], [4.0, 2.0])
    """

    def __init__(self, capacity: int) -> None:
        self._ring = np.empty(capacity)
        self._ascending = np.empty(capacity)
        self._size = 0
        self._next = 0  # place in the ring of the next value

    def __len__(self) -> int:
        return self._size

    @property
    def ascending(self) -> Floats:
        """A copy, smallest first."""
        return self._ascending[: self._size].copy()

    def newest(self, count: int) -> Floats:
        """A copy of the last values, oldest of them first."""
        places = np.arange(self._next - min(count, self._size), self._next)
        return self._ring[places % len(self._ring)]

    def add(self, value: float) -> None:
        if self._size == len(self._ring):
            self._remove(float(self._ring[self._next]))
        self._ring[self._next] = value
        self._next = (self._next + 1) % len(self._ring)
        place = int(np.searchsorted(self._ascending[: self._size], value))
        self._ascending[place + 1 : self._size + 1] = self._ascending[place : self._size]
        self._ascending[place] = value
        self._size += 1

    def keep_newest(self, count: int) -> None:
        """Forget all but the last ``count`` values."""
        kept = np.sort(self.newest(count))
        self._size = len(kept)
        self._ascending[: self._size] = kept

    def _remove(self, value: float) -> None:
        place = int(np.searchsorted(self._ascending[: self._size], value))
        self._ascending[place : self._size - 1] = self._ascending[place + 1 : self._size]
        self._size -= 1
