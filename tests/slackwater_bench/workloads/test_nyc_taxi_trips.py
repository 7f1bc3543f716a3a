"""Generated taxi trips: the same whenever they are asked for, and like trips in New York."""

import numpy as np
import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.nyc_taxi_trips import NUMBERS, TEXTS, NycTaxiTrips

MANY = np.arange(50_000)


@pytest.mark.parametrize(("seed", "partition"), [(5, 0), (4, 1)])
def test_seeds_and_partitions_differ(seed: int, partition: int):
    one = NycTaxiTrips(seed=4).columns(0, MANY)["total_amount"]
    assert one != NycTaxiTrips(seed=seed).columns(partition, MANY)["total_amount"]


def test_columns_are_those_of_the_schema_and_numbers_agree_with_them():
    trips = NycTaxiTrips(seed=1)
    columns, numbers = trips.columns(0, MANY), trips.numbers(0, MANY)
    named = [part.split()[0] for part in trips.schema.split(",")]
    assert sorted(columns) == sorted(named) == sorted(TEXTS + NUMBERS)
    assert tuple(numbers) == NUMBERS
    assert all((columns[name].to_numpy() == numbers[name]).all() for name in NUMBERS)
    assert all(len(text) == 32 for text in columns["medallion"][:100].to_pylist())


def test_unbroken_trips_are_possible():
    trips = NycTaxiTrips(seed=2, broken=0).numbers(0, MANY)
    ranges = {
        "trip_time_in_secs": (60, 36_000),
        "trip_distance": (0.1, 40),
        "pickup_longitude": (-74.3, -73.6),
        "pickup_latitude": (40.4, 41.1),
        "dropoff_longitude": (-74.9, -73.1),
        "dropoff_latitude": (40.1, 41.4),
        "fare_amount": (2.5, 300),
        "surcharge": (0, 1),
        "tip_amount": (0, 100),
        "total_amount": (3, 400),
    }
    for name, (low, high) in ranges.items():
        assert low <= trips[name].min(), name
        assert trips[name].max() <= high, name
    speed = trips["trip_distance"] / trips["trip_time_in_secs"] * 3600
    assert speed.max() < 50
    assert 1.5 < np.median(trips["trip_distance"]) < 2.5
    assert 7 < np.median(trips["total_amount"]) < 14


def test_the_total_is_the_sum_of_whole_cents():
    trips = NycTaxiTrips(seed=2).numbers(0, MANY)
    parts = ("fare_amount", "surcharge", "mta_tax", "tip_amount", "tolls_amount")
    cents = {name: np.rint(trips[name] * 100) for name in (*parts, "total_amount")}
    assert all((cents[name] / 100 == trips[name]).all() for name in cents)
    assert (sum(cents[name] for name in parts) == cents["total_amount"]).all()


def test_only_cards_tip():
    columns = NycTaxiTrips(seed=2).columns(0, MANY)
    kinds = np.array(columns["payment_type"].to_pylist())
    tipped = columns["tip_amount"].to_numpy() > 0
    assert set(kinds[tipped]) == {"CRD"}
    assert np.mean(kinds == "CRD") == pytest.approx(0.54, abs=0.02)
    assert np.mean(kinds == "CSH") == pytest.approx(0.45, abs=0.02)


@pytest.mark.parametrize("broken", [0.0, 0.02, 0.3, 1.0])
def test_share_of_broken_trips(broken: float):
    trips = NycTaxiTrips(seed=3, broken=broken).numbers(0, MANY)
    nowhere = trips["pickup_longitude"] == 0
    parked = trips["trip_distance"] == 0
    flying = trips["trip_distance"] * 3600 > trips["trip_time_in_secs"] * 100
    for kind in (nowhere, parked, flying):
        assert np.mean(kind) == pytest.approx(broken / 3, abs=0.015)
    assert np.mean(nowhere | parked | flying) == pytest.approx(broken, abs=0.015)


@pytest.mark.parametrize("broken", [-0.1, 1.5])
def test_a_share_must_be_one(broken: float):
    with pytest.raises(UsageError, match="between 0 and 1"):
        NycTaxiTrips(seed=1, broken=broken)
