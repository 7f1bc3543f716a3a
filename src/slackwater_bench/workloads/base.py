"""What every workload offers: a query for Spark, and the results it must give."""

import json
from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.feed import load_feed
from slackwater.engines.spark.sources.feed_options import FeedOptions
from slackwater.traffic import Timeline, Traffic

Rows = Counter[tuple[Any, ...]]  # of a window: a multiset
WindowRows = dict[int, Rows]  # by window end in microseconds
TrueValues = dict[tuple[Any, ...], dict[str, Any]]  # by group: each aggregate's value


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
        """Make windows given in seconds; without a slide they tumble."""
        slide_s = size_s if slide_s is None else slide_s
        return cls(round(size_s * 1e6), round(slide_s * 1e6), round(phase_s * 1e6))

    def column(self, time: Column | str) -> Column:
        """Return the window, or windows, of an event time."""
        lengths = (self.size_us, self.slide_us, self.phase_us % self.slide_us)
        return F.window(time, *(f"{length} microseconds" for length in lengths))

    def ends(self, after_us: int, until_us: int) -> list[int]:
        """Return window ends with ``after_us < end <= until_us``."""
        first = (after_us - self.phase_us - self.size_us) // self.slide_us + 1
        begin = self.phase_us + self.size_us + first * self.slide_us
        return list(range(begin, until_us + 1, self.slide_us))


@dataclass(frozen=True, kw_only=True)
class Workload(ABC):
    """One benchmark: traffic, a windowed query on it, and the truth about its results.

    A member writes :attr:`_generator`, :meth:`_results` and :meth:`_truth_of`.

    Parameters
    ----------
    traffic
        The input stream.
    window_s, slide_s, phase_s
        Windows start at phase + n * slide since the epoch; without a slide they tumble.
    watermark_s
        None: the largest delay, so that no row is ever dropped.
    """

    name: ClassVar[str]  # as in reports
    columns: ClassVar[tuple[str, ...]]  # of a result, after its window
    time_column: ClassVar[str] = "event_time"

    traffic: Traffic
    window_s: float
    slide_s: float | None = None
    phase_s: float = 0.0
    watermark_s: float | None = None

    @property
    @abstractmethod
    def _generator(self) -> type[Any]:
        """Return the class of the payload generator."""

    @cached_property
    def events(self) -> Any:
        """Return the payload generator, as the feed has one; for the truth."""
        return self._generator(seed=self.traffic.seed, **self._arguments)

    @property
    def _arguments(self) -> dict[str, Any]:
        """Return arguments of the payload generator, besides its seed."""
        return {}

    @abstractmethod
    def _results(self, events: DataFrame) -> DataFrame:
        """Return the query on its input: a column ``window``, and ``columns``."""

    @abstractmethod
    def _truth_of(self, end_us: int) -> Rows:
        """Compute the rows of the window with this end without Spark."""

    @cached_property
    def windows(self) -> WindowGrid:
        """Return where the windows lie."""
        return WindowGrid.of_seconds(self.window_s, self.slide_s, self.phase_s)

    @property
    def watermark_ms(self) -> int:
        """Return the watermark's delay."""
        return self.traffic.watermark_ms(self.watermark_s)

    def feed_options(
        self,
        *,
        rows_per_batch: int | None = None,
        sampled: bool = False,
    ) -> FeedOptions:
        """Return the input stream as a feed."""
        return FeedOptions(
            traffic=self.traffic,
            generator=f"{self._generator.__module__}:{self._generator.__qualname__}",
            arguments=json.dumps(self._arguments, sort_keys=True),
            rows_per_batch=rows_per_batch,
            sampled=sampled,
        )

    def query(
        self,
        spark: SparkSession,
        *,
        rows_per_batch: int | None = None,
        events: DataFrame | None = None,
    ) -> DataFrame:
        """Return the streaming query: ``window_start``, ``window_end``, then ``columns``.

        Parameters
        ----------
        rows_per_batch
            Of the feed that it reads.
        events
            What it reads instead: the same columns from another source.
        """
        if events is None:
            events = load_feed(spark, self.feed_options(rows_per_batch=rows_per_batch))
        events = events.withWatermark(self.time_column, f"{self.watermark_ms} milliseconds")
        return self._results(events).select(
            F.col("window.start").alias("window_start"),
            F.col("window.end").alias("window_end"),
            *self.columns,
        )

    def window_ends(self, after_us: int, until_us: int) -> list[int]:
        """Return ends of windows with ``after_us < end <= until_us``."""
        return self.windows.ends(after_us, until_us)

    def truth(self, after_us: int, until_us: int) -> WindowRows:
        """Compute the rows that each of these windows must have, without Spark."""
        return {end: self._truth_of(end) for end in self.window_ends(after_us, until_us)}

    def _numbers(self, end_us: int) -> Iterator[tuple[int, NDArray[np.int64]]]:
        """Yield the events of the window with this end: partition, and their numbers there."""
        first = self._timeline.happened(end_us - self.windows.size_us - 1)
        last = self._timeline.happened(end_us - 1)
        for partition in range(self.traffic.partitions):
            yield partition, np.arange(*self._timeline.partition_range(partition, first, last))

    @cached_property
    def _timeline(self) -> Timeline:
        return self.traffic.timeline()


@dataclass(frozen=True, kw_only=True)
class ApproximateWorkload(Workload):
    """A workload that can also be had approximately.

    A member says its groups and aggregates, and writes :meth:`sampled_rows` and
    :meth:`true_values`.
    """

    by: ClassVar[tuple[str, ...]] = ()  # columns of its groups
    aggregates: ClassVar[dict[str, str]]  # as for ``Fleet.approximate``

    @abstractmethod
    def sampled_rows(self, events: DataFrame) -> DataFrame:
        """Return the stateless part of its query, with the column ``sample``."""

    @abstractmethod
    def true_values(self, end_us: int) -> TrueValues:
        """Compute the values of the window with this end without Spark."""

    def error(self, truth: Mapping[str, Any] | None, found: Mapping[str, Any]) -> float:
        """Return how far a result row is off: the largest relative error of its aggregates."""
        if truth is None:
            return float("inf")
        return float(max(abs(found[name] / truth[name] - 1) for name in self.aggregates))


def collect_windows(results: DataFrame, columns: Sequence[str]) -> WindowRows:
    """Return rows of a sink as multisets by window end, for a comparison with the truth."""
    windows: WindowRows = defaultdict(Counter)
    for end, *values in results.select(F.unix_micros("window_end"), *columns).collect():
        windows[end][tuple(tuple(v) if isinstance(v, list) else v for v in values)] += 1
    return dict(windows)


def differences(expected: WindowRows, seen: WindowRows) -> list[str]:
    """Return one line for each window whose rows are not the expected ones; empty when all agree.

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
