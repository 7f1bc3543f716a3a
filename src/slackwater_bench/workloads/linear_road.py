"""Linear Road: tolls that depend on the traffic and on accidents, by segment and window."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.base import Rows, WindowGrid, WindowRows, Workload
from slackwater_bench.workloads.linear_road_cars import (
    EXIT_LANE,
    FEET_PER_REPORT,
    REPORT_COLUMNS,
    SEGMENT_FEET,
    SEGMENTS,
    Ints,
    LinearRoadCars,
    Reports,
)
from slackwater_bench.workloads.linear_road_file import LinearRoadFile

SLOW_MPH = 40  # average speed from which on a segment is free

_SEGMENT = ("xway", "dir", "seg")
_COLUMNS = {  # of a result, after its window
    "statistics": (*_SEGMENT, "cars", "reports", "average_speed"),
    "accidents": (*_SEGMENT, "stopped"),
    "tolls": (*_SEGMENT, "entries", "accidents", "tolls"),
}


@dataclass(frozen=True, kw_only=True)
class LinearRoad(Workload):
    """Segment statistics, accidents, and tolls from a join of three sub-streams.

    Three windowed aggregates are joined on segment and window: how many cars there are and how
    fast, where two cars stand at the same place, and how many cars enter and must pay. A car
    pays ``2 * (cars - crowd) ** 2`` for a segment that is slow and crowded and has no accident.
    A last window adds up what the segments earn.

    Parameters
    ----------
    traffic
        The input stream.
    variant
        How much of the pipeline runs: ``statistics`` (one aggregate), ``accidents`` (two), or
        ``tolls`` (all: five aggregates, two joins). Tolls read the feed once for each
        sub-stream, because Spark gives every branch of a query a source of its own.
    cars, xways
        See :class:`LinearRoadCars`.
    file
        Plays the reports of a file in the original format instead.
    crowd
        Cars in a window up to which a segment is free.
    window_s, slide_s, phase_s
        Of the sub-streams' windows.
    stopped_reports
        Reports from the same place, at speed zero, that make a car a stopped one.
    last_window_third
        Whether the last window of the tolls has a third of the earlier windows' length and
        slide, so that its deadlines come three times as often. Otherwise it tumbles with their
        slide: one deadline for each of theirs.

    Examples
    --------
    >>> from slackwater.traffic import Traffic
    >>> road = LinearRoad(traffic=Traffic(start_s=0, rate="1000"))
    >>> road.window_ends(0, 9_000_000)
    [2000000, 5000000, 8000000]
    >>> rows = road.truth(7_000_000, 8_000_000)[8_000_000]
    >>> road.columns, max(rows, key=lambda row: row[-1])
    (('xway', 'dir', 'seg', 'entries', 'accidents', 'tolls'), (0, 1, 32, 14, 0, 3388))

    References
    ----------
    Arasu et al., *Linear Road: A Stream Data Management Benchmark*, VLDB 2004.
    """

    name: ClassVar[str] = "linear_road"
    columns: ClassVar[tuple[str, ...]] = _COLUMNS["tolls"]  # an instance has its variant's

    window_s: float = 5.0
    slide_s: float | None = 3.0
    variant: str = "tolls"
    cars: int = 400
    xways: int = 1
    file: str | None = None
    crowd: int = 5
    stopped_reports: int = 4
    last_window_third: bool = False

    def __post_init__(self) -> None:
        if self.variant not in _COLUMNS:
            raise UsageError(f"unknown variant '{self.variant}': use one of {', '.join(_COLUMNS)}")
        if self.last_window_third and self.variant != "tolls":
            raise UsageError("last_window_third needs the variant 'tolls': others have no last one")
        object.__setattr__(self, "columns", _COLUMNS[self.variant])  # past the frozen dataclass

    @cached_property
    def last_windows(self) -> WindowGrid:
        """Where the windows of the results lie."""
        early = self.windows
        if self.variant != "tolls":
            return early
        size_us, slide_us = early.slide_us, early.slide_us
        if self.last_window_third:
            size_us, slide_us = early.size_us // 3, early.slide_us // 3
        # So that a window ends with each of the earlier ones, which does not delay its results.
        return WindowGrid(size_us, slide_us, early.phase_us + early.size_us - size_us)

    @property
    def _generator(self) -> type[LinearRoadCars | LinearRoadFile]:
        return LinearRoadCars if self.file is None else LinearRoadFile

    @property
    def _arguments(self) -> dict[str, Any]:
        partitions = self.traffic.partitions
        if self.file is not None:
            return {"path": str(Path(self.file).absolute()), "partitions": partitions}
        return {"cars": self.cars, "xways": self.xways, "partitions": partitions}

    def _results(self, events: DataFrame) -> DataFrame:
        """Return the results; limits on rows hold for each of the three reads of ``tolls``."""
        reports = events.withColumn("window", self.windows.column("event_time"))
        build = {"statistics": _statistics, "accidents": self._accidents, "tolls": self._tolls}
        return build[self.variant](reports)

    def _accidents(self, reports: DataFrame) -> DataFrame:
        """Return segments where two cars or more stand at one place, with their stopped cars."""
        stopped_cars = (
            reports.where("speed = 0")
            .groupBy("window", *_SEGMENT, "lane", "pos", "vid")
            .count()
            .where(F.col("count") >= self.stopped_reports)
        )
        places = F.size(F.collect_set(F.struct("lane", "pos")))
        return (
            stopped_cars.groupBy("window", *_SEGMENT)
            .agg(F.count("*").alias("stopped"), places.alias("places"))
            .where("places < stopped")
            .drop("places")
        )

    def _tolls(self, reports: DataFrame) -> DataFrame:
        same = ["window", *_SEGMENT]
        joined = (
            _statistics(reports)
            .join(_entries(reports), same)
            .join(self._accidents(reports), same, "left")
        )
        over = F.col("cars").cast("long") - self.crowd
        charged = F.col("stopped").isNull() & (F.col("average_speed") < SLOW_MPH) & (over > 0)
        earned = F.when(charged, 2 * over * over * F.col("entries")).otherwise(F.lit(0))
        last = self.last_windows.column(F.window_time("window"))
        return joined.groupBy(last.alias("window"), *_SEGMENT).agg(
            F.sum("entries").alias("entries"),
            F.count("stopped").alias("accidents"),
            F.sum(earned).alias("tolls"),
        )

    def window_ends(self, after_us: int, until_us: int) -> list[int]:
        """Return ends of windows with ``after_us < end <= until_us``."""
        return self.last_windows.ends(after_us, until_us)

    def truth(self, after_us: int, until_us: int) -> WindowRows:
        """Return the rows of every window that ends in a stretch of time."""
        if self.variant != "tolls":
            return super().truth(after_us, until_us)
        return self._truth_of_tolls(self.window_ends(after_us, until_us))

    def _truth_of(self, end_us: int) -> Rows:
        if self.variant == "tolls":
            return self._truth_of_tolls([end_us])[end_us]
        reports = self._reports(end_us)
        accidents = self.variant == "accidents"
        return _rows(self._true_accidents(reports) if accidents else _true_statistics(reports))

    def _truth_of_tolls(self, ends_us: list[int]) -> WindowRows:
        """Compute last windows; they share earlier ones, which are worked out once."""
        if not ends_us:
            return {}
        early_ends = self.windows.ends(ends_us[0] - self.last_windows.size_us, ends_us[-1])
        earned = {end: self._true_tolls(self._reports(end)) for end in early_ends}
        return {end: self._added_up(end, earned) for end in ends_us}

    def _added_up(self, end_us: int, earned: Mapping[int, Mapping[int, Ints]]) -> Rows:
        """Add up a last window: the earlier windows whose last moment lies in it."""
        sums: dict[int, Ints] = {}
        for early in self.windows.ends(end_us - self.last_windows.size_us, end_us):
            for segment, values in earned[early].items():
                sums[segment] = values + sums.get(segment, 0)
        return _rows({segment: tuple(values.tolist()) for segment, values in sums.items()})

    def _reports(self, end_us: int) -> Reports:
        """Return all reports in the sub-streams' window with this end, and their ``segment``."""
        parts = [self.events.reports(*numbers) for numbers in self._numbers(end_us)]
        reports = {name: np.concatenate([part[name] for part in parts]) for name in REPORT_COLUMNS}
        reports["segment"] = (reports["xway"] * 2 + reports["dir"]) * SEGMENTS + reports["seg"]
        return reports

    def _true_accidents(self, reports: Reports) -> dict[int, tuple[int, ...]]:
        """Return ``(stopped,)`` by segment, where there is an accident."""
        still = reports["speed"] == 0
        place = (reports["segment"] << 24 | reports["lane"] << 20 | reports["pos"])[still]
        places, place_of = np.unique(place, return_inverse=True)
        cars, number = np.unique(place_of << 32 | reports["vid"][still], return_counts=True)
        stopped_at = places[cars[number >= self.stopped_reports] >> 32]
        segments, stopped = np.unique(stopped_at >> 24, return_counts=True)
        _, different = np.unique(np.unique(stopped_at) >> 24, return_counts=True)
        crash = different < stopped
        return {
            s: (n,) for s, n in zip(segments[crash].tolist(), stopped[crash].tolist(), strict=True)
        }

    def _true_tolls(self, reports: Reports) -> dict[int, Ints]:
        """Return ``[entries, accidents, tolls]`` by segment, of one of the earlier windows."""
        statistics, accidents = _true_statistics(reports), self._true_accidents(reports)
        segments, entries = np.unique(reports["segment"][_enters(reports)], return_counts=True)
        tolls = {}
        for segment, entered in zip(segments.tolist(), entries.tolist(), strict=True):
            cars, _, average_speed = statistics[segment]
            over = cars - self.crowd
            charged = segment not in accidents and average_speed < SLOW_MPH and over > 0
            earned = 2 * over * over * entered if charged else 0
            tolls[segment] = np.array([entered, segment in accidents, earned], dtype=np.int64)
        return tolls


def _statistics(reports: DataFrame) -> DataFrame:
    """Return how many cars there are in a segment, and how fast."""
    # A set is exact, where Spark's approximate count is not, and needs no second aggregate.
    cars = F.size(F.collect_set("vid"))
    average_speed = F.expr("sum(speed) div count(*)")
    return reports.groupBy("window", *_SEGMENT).agg(
        cars.alias("cars"), F.count("*").alias("reports"), average_speed.alias("average_speed")
    )


def _entries(reports: DataFrame) -> DataFrame:
    """Return how many cars enter a segment and do not leave the expressway there."""
    return (
        reports.where(
            f"if(dir = 0, pos - seg * {SEGMENT_FEET}, (seg + 1) * {SEGMENT_FEET} - 1 - pos)"
            f" < speed * {FEET_PER_REPORT} and lane <> {EXIT_LANE}"
        )
        .groupBy("window", *_SEGMENT)
        .agg(F.count("*").alias("entries"))
    )


def _enters(reports: Reports) -> NDArray[np.bool_]:
    """Tell which reports are the first from their segment: the car was outside before."""
    inside = reports["pos"] - reports["seg"] * SEGMENT_FEET
    inside = np.where(reports["dir"] == 0, inside, SEGMENT_FEET - 1 - inside)
    near = inside < reports["speed"] * FEET_PER_REPORT
    enters: NDArray[np.bool_] = near & (reports["lane"] != EXIT_LANE)
    return enters


def _true_statistics(reports: Reports) -> dict[int, tuple[int, ...]]:
    """Return ``(cars, reports, average_speed)`` by segment."""
    segments, segment_of = np.unique(reports["segment"], return_inverse=True)
    number = np.bincount(segment_of)
    speeds = np.bincount(segment_of, weights=reports["speed"]).astype(np.int64)
    cars = np.bincount(np.unique(segment_of << 32 | reports["vid"]) >> 32)
    values = zip(cars.tolist(), number.tolist(), (speeds // number).tolist(), strict=True)
    return dict(zip(segments.tolist(), values, strict=True))


def _rows(by_segment: Mapping[int, tuple[int, ...]]) -> Rows:
    rows: Rows = Counter()
    for segment, values in by_segment.items():
        road, seg = divmod(segment, SEGMENTS)
        rows[(*divmod(road, 2), seg, *values)] += 1
    return rows
