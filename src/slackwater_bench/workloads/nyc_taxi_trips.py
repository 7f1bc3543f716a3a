"""Taxi trips that look like New York's, each a function of seed, partition and index.

Kept apart from the query, so that the processes that read do not load it. The columns are those
of the DEBS 2015 grand challenge, with two differences that come from replaying at another time:
``dropoff_datetime`` is the event time, which the feed adds, and ``pickup_datetime`` is left out:
it is the drop-off less the duration.
"""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.core.errors import UsageError
from slackwater.traffic import BLOCK, block_generator, gather

TEXTS = ("medallion", "hack_license", "payment_type")
NUMBERS = (
    "trip_time_in_secs",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "fare_amount",
    "surcharge",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "total_amount",
)
SCHEMA = (
    "medallion string, hack_license string, trip_time_in_secs bigint, trip_distance double, "
    "pickup_longitude double, pickup_latitude double, dropoff_longitude double, "
    "dropoff_latitude double, payment_type string, fare_amount double, surcharge double, "
    "mta_tax double, tip_amount double, tolls_amount double, total_amount double"
)
POOL = 4 * BLOCK  # different trips: about as many as there were taxis, and 3 MiB

PAYMENT_TYPES = ("CRD", "CSH", "NOC", "DIS", "UNK")

_PAYMENT_SHARES = (0.54, 0.45, 0.004, 0.002, 0.004)
_CARD = PAYMENT_TYPES.index("CRD")

# Where trips begin: share, longitude, latitude, spread in degrees, how much longer trips are.
_PLACES = (
    (0.50, -73.980, 40.757, 0.012, 1.0),  # Midtown
    (0.22, -74.000, 40.727, 0.010, 1.1),  # below 14th Street
    (0.15, -73.962, 40.783, 0.011, 1.0),  # Upper East and West Side
    (0.04, -73.873, 40.774, 0.004, 4.0),  # LaGuardia
    (0.03, -73.785, 40.645, 0.004, 7.0),  # Kennedy
    (0.06, -73.930, 40.720, 0.060, 1.5),  # the other boroughs
)

# Units of ``NUMBERS`` as they are drawn: whole numbers, so that money is exact.
_UNITS = np.array([1, 100, *[1_000_000] * 4, *[100] * 6], dtype=np.float64).reshape(-1, 1)

_LATITUDE_PER_MILE, _LONGITUDE_PER_MILE = 0.01449, 0.01910  # degrees, at New York
_DETOUR = 1.3  # miles driven for a mile as the crow flies

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


class NycTaxiTrips:
    """Payload generator: a taxi has set down its passengers.

    A pool of trips is drawn first, and every event is one of them: working out a trip anew takes
    ten times as long as looking one up, which would show beside the work of a micro-batch.

    Parameters
    ----------
    seed
        Of everything that is drawn.
    broken
        Share of reports that cannot be true: coordinates of zero, a distance of zero, or a
        distance that no taxi covers in the time. The real data has such reports too.

    Examples
    --------
    >>> trips = NycTaxiTrips(seed=1)
    >>> columns = trips.columns(0, np.array([0, 1]))
    >>> columns["trip_distance"].to_pylist(), columns["total_amount"].to_pylist()
    ([1.79, 6.34], [8.95, 25.9])

    References
    ----------
    Jerzak and Ziekow, *The DEBS 2015 Grand Challenge*, DEBS 2015.
    """

    schema = SCHEMA
    event_time = "dropoff_datetime"

    def __init__(self, *, seed: int, broken: float = 0.02) -> None:
        if not 0 <= broken <= 1:
            raise UsageError(f"the share of broken trips must lie between 0 and 1, not {broken}")
        self.seed = seed
        rng = block_generator(seed, 0, 0, "nyc-taxi-pool")
        payment = _choose(rng, _PAYMENT_SHARES)
        journey, coordinates = _journeys(rng)
        money = _money(rng, journey, payment == _CARD)
        _break(rng, broken, journey, coordinates)
        whole = np.vstack([journey, coordinates, money])
        self._numbers: dict[str, Floats] = dict(zip(NUMBERS, whole / _UNITS, strict=True))
        self._seconds = journey[0]
        self._texts = {
            "medallion": pa.array(_hashes(seed, "nyc-taxi-medallions")),
            "hack_license": pa.array(_hashes(seed, "nyc-taxi-licenses")),
            "payment_type": pa.array(PAYMENT_TYPES).take(pa.array(payment)),
        }

    def numbers(self, partition: int, index: Ints) -> dict[str, Floats]:
        """Return the columns ``NUMBERS`` of some trips of one partition."""
        chosen = self._choices(partition, index)
        return {name: values[chosen] for name, values in self._numbers.items()}

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        chosen = self._choices(partition, index)
        columns = {name: pa.array(values[chosen]) for name, values in self._numbers.items()}
        columns |= {name: pool.take(pa.array(chosen)) for name, pool in self._texts.items()}
        columns["trip_time_in_secs"] = pa.array(self._seconds[chosen])
        return columns

    def _choices(self, partition: int, index: Ints) -> NDArray[np.uint16]:
        def draw(block: int) -> NDArray[np.uint16]:
            rng = block_generator(self.seed, partition, block, "nyc-taxi")
            return rng.integers(0, POOL, size=BLOCK, dtype=np.uint16)

        return gather(index, draw)


def _journeys(rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Return seconds and hundredths of a mile; four coordinates in millionths of a degree."""
    _, longitudes, latitudes, spreads, longer = np.array(_PLACES).T
    place = _choose(rng, [share for share, *_ in _PLACES])
    miles = np.clip(1.8 * rng.lognormal(0.0, 0.6, POOL) * longer[place], 0.1, 40.0)
    mph = 12 * rng.lognormal(0.0, 0.3, POOL) * np.sqrt(longer[place])  # highways to airports
    seconds = np.maximum(3600 * miles / np.clip(mph, 4.0, 45.0), 60.0)
    east, north = rng.standard_normal((2, POOL)) * spreads[place]
    longitude, latitude = longitudes[place] + east, latitudes[place] + north
    heading = rng.uniform(0.0, 2 * np.pi, POOL)
    eastward = np.cos(heading) * miles / _DETOUR * _LONGITUDE_PER_MILE
    northward = np.sin(heading) * miles / _DETOUR * _LATITUDE_PER_MILE
    places = np.stack([longitude, latitude, longitude + eastward, latitude + northward])
    return _whole(np.stack([seconds, miles * 100])), _whole(places * 1e6)


def _money(rng: np.random.Generator, journey: Ints, by_card: NDArray[np.bool_]) -> Ints:
    """Return fare, surcharge, tax, tip, tolls and total in cents, by a simpler meter."""
    seconds, hundredths = journey
    fare = 250 + 50 * (hundredths * 4 // 100 + seconds // 240)
    surcharge = 50 * _choose(rng, (0.5, 0.35, 0.15))  # nothing, at night, in the rush hour
    tax = np.full(POOL, 50)
    tip = np.where(by_card, fare * rng.integers(10, 31, POOL) // 100, 0)  # cash tips: unknown
    tolls = 533 * _choose(rng, (0.95, 0.05))
    return np.stack([fare, surcharge, tax, tip, tolls, fare + surcharge + tax + tip + tolls])


def _break(rng: np.random.Generator, broken: float, journey: Ints, coordinates: Ints) -> None:
    """Make a share of the trips impossible, in three ways that are equally frequent."""
    chance = rng.random(POOL)
    coordinates[:, chance < broken / 3] = 0
    journey[1, (chance >= broken / 3) & (chance < broken * 2 / 3)] = 0
    journey[1, (chance >= broken * 2 / 3) & (chance < broken)] *= 1000


def _choose(rng: np.random.Generator, shares: tuple[float, ...] | list[float]) -> Ints:
    bounds = np.cumsum(shares)[:-1]
    return np.searchsorted(bounds, rng.random(POOL), side="right").astype(np.int64)


def _whole(values: Floats) -> Ints:
    return np.rint(values).astype(np.int64)


def _hashes(seed: int, purpose: str) -> list[str]:
    """Return seeded strings that look like MD5 sums, one for each trip of the pool."""
    digits = block_generator(seed, 0, 0, purpose).bytes(16 * POOL).hex().upper()
    return [digits[n : n + 32] for n in range(0, len(digits), 32)]
