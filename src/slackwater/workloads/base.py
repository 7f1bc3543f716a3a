"""What every workload offers: a query for Spark, and the results it must give."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.traffic import Traffic

WindowRows = dict[int, Counter[tuple[Any, ...]]]  # by window end in microseconds: a multiset


class Workload(Protocol):
    """One benchmark: traffic, a query on it, and the truth about its results."""

    @property
    def name(self) -> str:
        """Short name, as in reports."""

    @property
    def traffic(self) -> Traffic:
        """The input stream."""

    def query(
        self,
        spark: SparkSession,
        *,
        rows_per_batch: int | None = None,
        knob: str | Path | None = None,
    ) -> DataFrame:
        """The streaming query; its rows start with ``window_start`` and ``window_end``."""

    def window_ends(self, after_us: int, until_us: int) -> list[int]:
        """Ends of windows with ``after_us < end <= until_us``."""

    def truth(self, after_us: int, until_us: int) -> WindowRows:
        """The rows that each of these windows must have, computed without Spark."""


@dataclass(frozen=True)
class WindowGrid:
    """Where windows of one size lie, in whole microseconds.

    >>> WindowGrid(size_us=3_000_000, slide_us=3_000_000, phase_us=1_000_000).ends(0, 8_000_000)
    [1000000, 4000000, 7000000]
    """

    size_us: int
    slide_us: int
    phase_us: int = 0  # windows start at phase + n * slide since the epoch

    def __post_init__(self) -> None:
        if not 0 < self.slide_us <= self.size_us:
            raise UsageError("a window needs a slide above zero and no longer than its size")

    @classmethod
    def of_seconds(cls, size_s: float, slide_s: float | None, phase_s: float) -> "WindowGrid":
        """Windows given in seconds; without a slide they tumble."""
        slide_s = size_s if slide_s is None else slide_s
        return cls(round(size_s * 1e6), round(slide_s * 1e6), round(phase_s * 1e6))

    def ends(self, after_us: int, until_us: int) -> list[int]:
        """Window ends with ``after_us < end <= until_us``."""
        first = (after_us - self.phase_us - self.size_us) // self.slide_us + 1
        begin = self.phase_us + self.size_us + first * self.slide_us
        return list(range(begin, until_us + 1, self.slide_us))


def collect_windows(results: DataFrame, columns: Sequence[str]) -> WindowRows:
    """Rows of a sink as multisets by window end, for a comparison with the truth."""
    windows: WindowRows = defaultdict(Counter)
    for end, *values in results.select(F.unix_micros("window_end"), *columns).collect():
        windows[end][tuple(values)] += 1
    return dict(windows)


def differences(expected: WindowRows, seen: WindowRows) -> list[str]:
    """One line for each window whose rows are not the expected ones; empty when all agree.

    >>> differences({3: Counter({("a", 1): 1})}, {3: Counter({("a", 1): 2})})
    ['window ending 3: 0 rows missing, 1 not expected']
    """
    lines = []
    for end in sorted(expected.keys() | seen.keys()):
        wanted, found = expected.get(end, Counter()), seen.get(end, Counter())
        if wanted != found:
            missing, surplus = (wanted - found).total(), (found - wanted).total()
            lines.append(f"window ending {end}: {missing} rows missing, {surplus} not expected")
    return lines
