"""Cores that running work shares evenly, as an operating system does."""

import heapq
import math

CLOSE_S = 1e-6  # seconds since the epoch are no finer than a quarter of this


class Cores:
    """Processor sharing: n pieces of work on c cores each get min(1, c / n) of a core.

    All pieces get the same, so one number tells how much each has had since the beginning, and a
    piece ends when that number reaches what it had at its start plus its length.

    >>> cores = Cores(1)
    >>> cores.start("a", 1.0, now_s=0.0)
    >>> cores.start("b", 0.5, now_s=0.0)
    >>> cores.next_end_s(), cores.ended(1.0), cores.next_end_s()
    (1.0, ['b'], 1.5)
    """

    def __init__(self, cores: float) -> None:
        self.cores = cores
        self.busy_s = 0.0  # of all cores together, so far
        self._served_s = 0.0  # that each piece has had since the beginning
        self._now_s = 0.0
        self._ends: list[tuple[float, int, str]] = []
        self._number = 0  # keeps the order of equals

    def start(self, name: str, work_s: float, now_s: float) -> None:
        """Add a piece of so many seconds on a core of its own."""
        self._move_to(now_s)
        self._number += 1
        heapq.heappush(self._ends, (self._served_s + work_s, self._number, name))

    def next_end_s(self) -> float:
        """Return when the next piece ends if none is added; infinite if there is none."""
        if not self._ends:
            return math.inf
        return self._now_s + (self._ends[0][0] - self._served_s) / self._share

    def ended(self, now_s: float) -> list[str]:
        """Take out what has ended by now."""
        self._move_to(now_s)
        found = []
        while self._ends and self._ends[0][0] <= self._served_s + CLOSE_S:
            found.append(heapq.heappop(self._ends)[2])
        return found

    @property
    def _share(self) -> float:
        return min(1.0, self.cores / len(self._ends)) if self._ends else 1.0

    def _move_to(self, now_s: float) -> None:
        if self._ends:
            passed_s = now_s - self._now_s
            self.busy_s += passed_s * min(self.cores, len(self._ends))
            self._served_s += passed_s * self._share
        self._now_s = now_s
