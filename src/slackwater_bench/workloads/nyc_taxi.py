"""New York taxi trips: what a trip costs and how far it goes, by area and sliding window."""

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.sampled_rows import SAMPLE
from slackwater_bench.workloads.base import ApproximateWorkload, Rows, TrueValues
from slackwater_bench.workloads.nyc_taxi_file import NycTaxiFile
from slackwater_bench.workloads.nyc_taxi_trips import NycTaxiTrips

# The grid of the challenge: 300 x 300 cells of 500 m, counted from 1 to the east and the south.
CELL_EAST, CELL_SOUTH = 0.005986, 0.004491556  # degrees
GRID_WEST, GRID_NORTH = -74.913585 - CELL_EAST / 2, 41.474937 + CELL_SOUTH / 2
GRID_CELLS = 300

# The city: 60 x 60 cells with Manhattan and both airports. The grid is as wide as 150 km, so
# areas that divide all of it would put nearly every trip into one.
CITY_X, CITY_Y, CITY_CELLS = 145, 130, 60

_LONGITUDES = (GRID_WEST, GRID_WEST + GRID_CELLS * CELL_EAST)
_LATITUDES = (GRID_NORTH - GRID_CELLS * CELL_SOUTH, GRID_NORTH)
BOUNDS = {  # what a true report keeps to, both ends included
    "pickup_longitude": _LONGITUDES,
    "pickup_latitude": _LATITUDES,
    "dropoff_longitude": _LONGITUDES,
    "dropoff_latitude": _LATITUDES,
    "trip_distance": (0.01, 100.0),  # miles
    "trip_time_in_secs": (1.0, 21_600.0),
    "total_amount": (0.01, 1000.0),  # dollars
}
MOST_MPH = 100

Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class NycTaxi(ApproximateWorkload):
    """Drop impossible reports, find the pickup's area, average by area and sliding window.

    Sums are of whole cents and hundredths of a mile, so that they are exact in any order, and
    the averages follow from them by one division.

    Parameters
    ----------
    traffic
        The input stream; the event time of a trip is its drop-off.
    areas
        Areas along each side of the city: ten make a hundred areas of 3 km x 3 km.
    file
        Trips to replay, see :class:`slackwater_bench.workloads.nyc_taxi_file.NycTaxiFile`; None:
        trips are generated.

    Examples
    --------
    >>> from slackwater.traffic import Traffic
    >>> taxi = NycTaxi(traffic=Traffic(start_s=0, rate="1000"), areas=1)
    >>> taxi.window_ends(0, 3_000_000)
    [1000000, 2000000, 3000000]
    >>> taxi.truth(0, 1_000_000)[1_000_000]
    Counter({(0, 981, 1133206, 286490, 11.551539245667685, 2.920387359836901): 1})

    References
    ----------
    Jerzak and Ziekow, *The DEBS 2015 Grand Challenge*, DEBS 2015.
    """

    name: ClassVar[str] = "nyt"
    columns: ClassVar[tuple[str, ...]] = (
        "area",
        "trips",
        "amount_cents",
        "distance_hundredths",
        "mean_amount",
        "mean_distance",
    )

    time_column: ClassVar[str] = "dropoff_datetime"
    by: ClassVar[tuple[str, ...]] = ("area",)
    aggregates: ClassVar[dict[str, str]] = {"mean_distance": "mean(hundredths)"}

    window_s: float = 2.0
    slide_s: float | None = 1.0
    areas: int = 10
    file: str | Path | None = None

    def __post_init__(self) -> None:
        if not 1 <= self.areas <= CITY_CELLS:
            raise UsageError(
                f"the areas along a side must lie between 1 and {CITY_CELLS}, not {self.areas}"
            )

    @property
    def _generator(self) -> type[NycTaxiTrips | NycTaxiFile]:
        return NycTaxiTrips if self.file is None else NycTaxiFile

    @property
    def _arguments(self) -> dict[str, Any]:
        return {} if self.file is None else {"path": str(Path(self.file).absolute())}

    def _results(self, events: DataFrame) -> DataFrame:
        window = self.windows.column(self.time_column).alias("window")
        sums = (
            self._prepared(events)
            .groupBy(window, "area")
            .agg(
                F.count("*").alias("trips"),
                F.sum("cents").alias("amount_cents"),
                F.sum("hundredths").alias("distance_hundredths"),
            )
        )
        hundred_trips = F.col("trips") * 100
        return sums.select(
            "*",
            (F.col("amount_cents") / hundred_trips).alias("mean_amount"),
            (F.col("distance_hundredths") / hundred_trips).alias("mean_distance"),
        )

    def sampled_rows(self, events: DataFrame) -> DataFrame:
        return self._prepared(events, SAMPLE)

    def true_values(self, end_us: int) -> TrueValues:
        return {
            (area,): {"mean_distance": hundredths / trips}
            for area, trips, _, hundredths, *_ in self._truth_of(end_us)
        }

    def _prepared(self, reports: DataFrame, *keep: str) -> DataFrame:
        """Return the stateless part: filter, map to cells, keep the city, map to areas, project.

        It leaves also the columns ``keep``.
        """
        for name, (low, high) in BOUNDS.items():
            reports = reports.where(F.col(name).between(low, high))
        placed = reports.where(
            F.col("trip_distance") * 3600 <= F.col("trip_time_in_secs") * MOST_MPH
        ).select(
            "dropoff_datetime",
            "trip_distance",
            "total_amount",
            _cell((F.col("pickup_longitude") - GRID_WEST) / CELL_EAST).alias("cell_x"),
            _cell((GRID_NORTH - F.col("pickup_latitude")) / CELL_SOUTH).alias("cell_y"),
            *keep,
        )
        last = CITY_CELLS - 1
        return (
            placed.where(F.col("cell_x").between(CITY_X, CITY_X + last))
            .where(F.col("cell_y").between(CITY_Y, CITY_Y + last))
            .withColumn("area_x", self._side(F.col("cell_x") - CITY_X))
            .withColumn("area_y", self._side(F.col("cell_y") - CITY_Y))
            .select(
                "dropoff_datetime",
                (F.col("area_y") * self.areas + F.col("area_x")).alias("area"),
                F.rint(F.col("total_amount") * 100).cast("bigint").alias("cents"),
                F.rint(F.col("trip_distance") * 100).cast("bigint").alias("hundredths"),
                *keep,
            )
        )

    def _side(self, cells: Column) -> Column:
        return F.floor(cells * self.areas / CITY_CELLS)

    def _truth_of(self, end_us: int) -> Rows:
        sums = np.zeros((self.areas**2, 3), dtype=np.int64)
        for partition, index in self._numbers(end_us):
            area, cents, hundredths = self._areas_and_sizes(partition, index)
            np.add.at(sums, area, np.stack([np.ones_like(area), cents, hundredths], axis=1))
        rows = [(area, *sums[area].tolist()) for area in np.flatnonzero(sums[:, 0]).tolist()]
        return Counter(
            (area, trips, cents, hundredths, cents / (trips * 100), hundredths / (trips * 100))
            for area, trips, cents, hundredths in rows
        )

    def _areas_and_sizes(self, partition: int, index: Ints) -> tuple[Ints, Ints, Ints]:
        """Return area, cents and hundredths of a mile of the trips that the query keeps."""
        trips = self.events.numbers(partition, index)
        keep = trips["trip_distance"] * 3600 <= trips["trip_time_in_secs"] * MOST_MPH
        for name, (low, high) in BOUNDS.items():
            keep &= (trips[name] >= low) & (trips[name] <= high)
        kept = {name: values[keep] for name, values in trips.items()}
        x = np.floor((kept["pickup_longitude"] - GRID_WEST) / CELL_EAST).astype(np.int64) + 1
        y = np.floor((GRID_NORTH - kept["pickup_latitude"]) / CELL_SOUTH).astype(np.int64) + 1
        x, y = x - CITY_X, y - CITY_Y
        city = (x >= 0) & (x < CITY_CELLS) & (y >= 0) & (y < CITY_CELLS)
        area = y * self.areas // CITY_CELLS * self.areas + x * self.areas // CITY_CELLS
        cents = np.rint(kept["total_amount"] * 100).astype(np.int64)
        hundredths = np.rint(kept["trip_distance"] * 100).astype(np.int64)
        return area[city], cents[city], hundredths[city]


def _cell(cells_from_edge: Column) -> Column:
    return F.floor(cells_from_edge) + 1
