"""What a Java virtual machine takes from the cores: collecting garbage, and warming up."""

from dataclasses import dataclass
from math import exp

PUBLISHED_CORES = 24
MOST = 0.9  # a share that is never exceeded: a collector gives up first


@dataclass(frozen=True, slots=True)
class Heap:
    """A heap with a tracing collector.

    A collection walks through all that lives; one is needed whenever the free part has filled
    up. So the cost of collecting grows with what lives ÷ what is free, and without bound.

    >>> heap = Heap(total_bytes=24e9, limit_bytes=17.5e9, walked_bytes_per_s=8e9)
    >>> round(heap.collecting(17.5e9, filled_bytes_per_s=0.8e9), 3)
    0.269
    >>> round(heap.collecting(6e9, filled_bytes_per_s=0.8e9), 3)
    0.033
    """

    total_bytes: float = 21e9
    limit_bytes: float = 17.5e9  # of queues and state; then sources are held back
    walked_bytes_per_s: float = 8e9  # by all cores together

    @classmethod
    def of(cls, cores: int) -> "Heap":
        """Make the heap of a node with so many cores, each with as much as was published."""
        share = cores / PUBLISHED_CORES
        whole = cls()
        return cls(
            whole.total_bytes * share, whole.limit_bytes * share, whole.walked_bytes_per_s * share
        )

    def collecting(self, live_bytes: float, filled_bytes_per_s: float) -> float:
        """Return the share of all cores' time."""
        free_bytes = self.total_bytes - live_bytes
        if free_bytes <= 0:
            return MOST
        collections_per_s = filled_bytes_per_s / free_bytes
        return min(MOST, collections_per_s * live_bytes / self.walked_bytes_per_s)


@dataclass(frozen=True, slots=True)
class WarmUp:
    """A machine that has just started: its code is not compiled yet.

    Costs are ``cold`` times as high in the beginning and settle.

    >>> warm_up = WarmUp(cold=5.0, settles_s=10.0)
    >>> warm_up.factor(0.0), round(warm_up.factor(60.0), 2)
    (5.0, 1.01)
    """

    cold: float = 10.0
    settles_s: float = 15.0

    def factor(self, age_s: float) -> float:
        """Return how many times as much everything costs at this age."""
        return 1.0 + (self.cold - 1.0) * exp(-age_s / self.settles_s)
