"""Cars on expressways that report where they are, each report a function of seed and number.

Kept apart from the query, so that the processes that read do not load it.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.traffic import BLOCK, block_generator, gather

SEGMENTS = 100  # of an expressway in each direction
SEGMENT_FEET = 5280  # a mile
SECONDS_BETWEEN_REPORTS = 30  # on the cars' own clock; the feed may play it faster
FEET_PER_REPORT = 44  # that a car of 1 mph drives between two reports
EXIT_LANE = 4
REPORT_COLUMNS = ("type", "time", "vid", "speed", "xway", "lane", "dir", "seg", "pos")
REPORT_SCHEMA = ", ".join(f"{name} int" for name in REPORT_COLUMNS)

TRIP_REPORTS = 40  # after which a car starts elsewhere
STOP_REPORTS = 8  # that a car sends while it stands
SLOWEST_MPH, FASTEST_MPH = 20, 60
CRASH_SHARE = 1 / 25  # of the trips of a pair of cars
BREAKDOWN_SHARE = 1 / 10  # of the trips of a car

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Reports = dict[str, Ints]


class LinearRoadCars:
    """Payload generator: position reports of cars that drive, break down and crash.

    The cars report in turn. A car makes one trip after the other; on each it drives at one speed
    on one expressway. On some trips it breaks down and stands for a while. On some, two cars
    drive together and stop at the same place: an accident.

    Parameters
    ----------
    seed
        Of all draws.
    cars
        How many there are. A car sends ``rate / cars`` reports a second; for accidents to be
        seen, a window must have room for four of them.
    xways
        How many expressways there are.
    partitions
        Of the traffic. The stream as a whole does not depend on it.

    Examples
    --------
    >>> cars = LinearRoadCars(seed=1, cars=2)
    >>> reports = cars.reports(0, np.array([0, 2, 4]))
    >>> reports["vid"].tolist(), reports["speed"].tolist(), np.diff(reports["pos"]).tolist()
    ([0, 0, 0], [32, 32, 32], [1408, 1408])
    """

    schema = REPORT_SCHEMA
    event_time = "event_time"

    def __init__(self, *, seed: int, cars: int = 400, xways: int = 1, partitions: int = 1) -> None:
        if cars < 2 or xways < 1 or partitions < 1:
            raise UsageError("Linear Road needs 2 cars, 1 expressway and 1 partition at least")
        self.seed = seed
        self.cars = cars
        self.xways = xways
        self.partitions = partitions

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        return arrow_columns(self.reports(partition, index))

    def reports(self, partition: int, index: Ints) -> Reports:
        """Return the columns as numbers, for the truth."""
        number = index * self.partitions + partition
        car, report = number % self.cars, number // self.cars
        pair = car // 2 * 2  # the even car leads
        trip, step = np.divmod(report + self._head_start(pair), TRIP_REPORTS)
        crash = self._draws(pair, trip)[0] < CRASH_SHARE
        crash &= pair + 1 < self.cars
        draws = self._draws(np.where(crash, pair, car), trip)
        stops = crash | (draws[1] < BREAKDOWN_SHARE)
        return self._drive(car, report, step, stops, draws)

    def _drive(
        self, car: Ints, report: Ints, step: Ints, stops: NDArray[np.bool_], draws: Floats
    ) -> Reports:
        """Return reports of cars at given steps of their trips."""
        cruise = _whole(draws[2], FASTEST_MPH - SLOWEST_MPH + 1) + SLOWEST_MPH
        last_moving = _whole(draws[3], TRIP_REPORTS - STOP_REPORTS - 1)  # step before the stop
        standing = stops & (step > last_moving) & (step <= last_moving + STOP_REPORTS)
        stood = np.where(stops, np.clip(step - last_moving, 0, STOP_REPORTS), 0)
        way = cruise * FEET_PER_REPORT
        room = SEGMENTS * SEGMENT_FEET - way * TRIP_REPORTS
        ahead = (draws[4] * room).astype(np.int64) + way * (step - stood)
        direction = _whole(draws[5], 2)
        pos = np.where(direction == 0, ahead, SEGMENTS * SEGMENT_FEET - 1 - ahead)
        lane = np.where(step == 0, 0, _whole(draws[6], 3) + 1)
        return {
            "type": np.zeros_like(car),
            "time": report * SECONDS_BETWEEN_REPORTS,
            "vid": car,
            "speed": np.where(standing, 0, cruise),
            "xway": _whole(draws[7], self.xways),
            "lane": np.where(step == TRIP_REPORTS - 1, EXIT_LANE, lane),
            "dir": direction,
            "seg": pos // SEGMENT_FEET,
            "pos": pos,
        }

    def _head_start(self, pair: Ints) -> Ints:
        """Count reports of its first trip that a car has behind it: not all start together."""
        return _whole(gather(pair, lambda block: self._block(block, "cars", 1))[0], TRIP_REPORTS)

    def _draws(self, car: Ints, trip: Ints) -> Floats:
        """Return eight numbers below 1 for a car's trip; a row each."""
        return gather(trip * self.cars + car, lambda block: self._block(block, "trips", 8))

    def _block(self, block: int, purpose: str, rows: int) -> Floats:
        return block_generator(self.seed, 0, block, f"linear-road-{purpose}").random((rows, BLOCK))


def arrow_columns(reports: Reports) -> dict[str, pa.Array]:
    """Return reports in the types of ``REPORT_SCHEMA``."""
    return {name: pa.array(column.astype(np.int32)) for name, column in reports.items()}


def _whole(draws: Floats, below: int) -> Ints:
    """Turn draws from 0 to 1 into whole numbers from zero to ``below - 1``."""
    return (draws * below).astype(np.int64)
