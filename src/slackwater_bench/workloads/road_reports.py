"""Linear Road's toll part on a road whose reports follow from their numbers.

The full benchmark with cars that move is ``linear_road``; this is its shape for engines that make
their own input: segment statistics, accidents, and tolls from both.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SEGMENTS = 50
CARS = 997
STEP_MS = 1  # event time between two reports
WINDOW_MS = 5_000
FREE_SPEED = 40  # toll is due in segments that are slower
STOPPED_FOR = 2  # reports of standing cars in a window that make an accident


@dataclass(frozen=True, kw_only=True)
class RoadReports:
    """One query."""

    number: int = 0
    seed: int = 1

    @property
    def name(self) -> str:
        return f"linear-road-{self.number}"

    def columns(self) -> dict[str, str]:
        """Return columns of a report, as SQL on its number ``id``."""
        mixed = f"((id * 7919 + {self.seed * 101}) % 10007)"
        return {
            "car": f"id % {CARS}",
            "seg": f"{mixed} % {SEGMENTS}",
            "speed": f"({mixed} / {SEGMENTS}) % 80",
        }

    def reports(
        self, ids: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return segment, speed and window of each."""
        mixed = (ids * 7919 + self.seed * 101) % 10007
        return mixed % SEGMENTS, (mixed // SEGMENTS) % 80, ids * STEP_MS // WINDOW_MS

    def truth(self, ids: NDArray[np.int64]) -> Counter[tuple[int, int, int]]:
        """Return tolls of all windows that end among these reports: window, segment, toll."""
        segments, speeds, windows = self.reports(ids)
        seen: dict[tuple[int, int], list[int]] = defaultdict(list)
        for window, segment, speed in zip(
            windows.tolist(), segments.tolist(), speeds.tolist(), strict=True
        ):
            seen[window, segment].append(speed)
        found: Counter[tuple[int, int, int]] = Counter()
        for (window, segment), of in seen.items():
            mean, stopped = sum(of) // len(of), sum(1 for speed in of if speed == 0)
            if mean < FREE_SPEED and stopped < STOPPED_FOR:
                found[window, segment, 2 * (FREE_SPEED - mean) ** 2] += 1
        return found
