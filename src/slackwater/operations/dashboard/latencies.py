"""Latencies counted in buckets, as Prometheus wants them."""

from bisect import bisect_left

BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0)


class Histogram:
    """How many latencies were at most so long.

    >>> found = Histogram()
    >>> found.add(0.3)
    >>> found.add(70.0)
    >>> found.cumulative()[1:3], found.cumulative()[-2:], found.sum_s
    ([('0.25', 0), ('0.5', 1)], [('60.0', 1), ('+Inf', 2)], 70.3)
    """

    def __init__(self) -> None:
        self.sum_s = 0.0
        self._counts = [0] * (len(BOUNDS_S) + 1)

    def add(self, latency_s: float) -> None:
        self.sum_s += latency_s
        self._counts[bisect_left(BOUNDS_S, latency_s)] += 1

    def cumulative(self) -> list[tuple[str, int]]:
        """Return bounds as text, and how many are not above them."""
        total, found = 0, []
        for bound, count in zip((*BOUNDS_S, "+Inf"), self._counts, strict=True):
            total += count
            found.append((str(bound), total))
        return found
