"""Where windows end, and the cells and sub-streams between their ends, in microseconds."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from slackwater.core.errors import UsageError

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Grid:
    """Windows start at ``phase + n * slide``. A *cell* lies between an end and the next.

    A *sub-stream* is a stretch of a cell with a sampling rate of its own; they are counted back
    from an end, because what arrives last is what matters.

    >>> grid = Grid(size_us=5_000_000, slide_us=3_000_000)
    >>> grid.end_after(0), grid.end_after(2_000_000)
    (2000000, 5000000)
    >>> grid.windows_per_event
    2
    """

    size_us: int
    slide_us: int
    phase_us: int = 0
    substream_us: int = 600_000

    def __post_init__(self) -> None:
        if not 0 < self.slide_us <= self.size_us:
            raise UsageError("a window needs a slide above zero and no longer than its size")
        if self.substream_us <= 0:
            raise UsageError("a sub-stream must be longer than zero")

    @property
    def windows_per_event(self) -> int:
        """How many windows an event can be in."""
        return -(-self.size_us // self.slide_us)

    @property
    def substreams(self) -> int:
        """Sub-streams in a window; the earliest may be shorter than the others."""
        return -(-self.size_us // self.substream_us)

    def end_after(self, time_us: int) -> int:
        """Return the first window end after a time: the end of its cell."""
        first = self.phase_us + self.size_us
        return first + ((time_us - first) // self.slide_us + 1) * self.slide_us

    def ends_after(self, times_us: Ints) -> Ints:
        """Return the first window ends after many times."""
        first = self.phase_us + self.size_us
        return first + ((times_us - first) // self.slide_us + 1) * self.slide_us

    def numbers(self) -> list[int]:
        """Return the grid as it is written into plans and offsets."""
        return [self.size_us, self.slide_us, self.phase_us, self.substream_us]
