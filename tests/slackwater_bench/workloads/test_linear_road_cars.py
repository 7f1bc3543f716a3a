"""Cars of Linear Road: the same reports however they are read, and traffic worth a toll."""

from collections import defaultdict

import numpy as np
import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.linear_road_cars import (
    EXIT_LANE,
    FEET_PER_REPORT,
    REPORT_COLUMNS,
    SEGMENT_FEET,
    SEGMENTS,
    STOP_REPORTS,
    TRIP_REPORTS,
    LinearRoadCars,
)


def test_seeds_give_other_traffic():
    one, other = (LinearRoadCars(seed=seed).reports(0, np.arange(1000)) for seed in (1, 2))
    assert (one["pos"] != other["pos"]).mean() > 0.99


def test_the_stream_is_the_same_in_any_number_of_partitions():
    whole = LinearRoadCars(seed=1).reports(0, np.arange(900))
    split = LinearRoadCars(seed=1, partitions=3)
    for partition in range(3):
        part = split.reports(partition, np.arange(300))
        assert all((part[name] == whole[name][partition::3]).all() for name in REPORT_COLUMNS)


def test_values_are_possible():
    reports = LinearRoadCars(seed=1, xways=2).reports(0, np.arange(200_000))
    assert set(reports["xway"].tolist()) == set(reports["dir"].tolist()) == {0, 1}
    assert set(reports["seg"].tolist()) == set(range(SEGMENTS))
    assert set(reports["lane"].tolist()) == set(range(EXIT_LANE + 1))
    assert (reports["seg"] == reports["pos"] // SEGMENT_FEET).all()
    assert (reports["vid"] == np.arange(200_000) % 400).all()


@pytest.mark.parametrize("car", [0, 7, 399])
def test_a_car_moves_as_fast_as_it_says(car: int):
    cars = LinearRoadCars(seed=1)
    reports = cars.reports(0, np.arange(car, 400 * 2000, 400))
    moved = np.diff(reports["pos"]) * np.where(reports["dir"][1:] == 0, 1, -1)
    on_a_trip = reports["lane"][1:] != 0  # not its first report
    assert (moved == reports["speed"][1:] * FEET_PER_REPORT)[on_a_trip].all()
    assert on_a_trip.mean() == pytest.approx(1 - 1 / TRIP_REPORTS, abs=1e-3)
    assert (reports["lane"][:-1] == EXIT_LANE).sum() == (~on_a_trip).sum()


def test_accidents_and_lone_breakdowns_happen_every_few_seconds():
    """At 1000 reports a second, over two minutes."""
    reports = LinearRoadCars(seed=1).reports(0, np.arange(120_000))
    standing: dict[tuple[int, ...], list[int]] = defaultdict(list)
    still = np.flatnonzero(reports["speed"] == 0)
    for row in still.tolist():
        place = tuple(int(reports[n][row]) for n in ("xway", "dir", "lane", "pos"))
        standing[place].append(int(reports["vid"][row]))
    crashes = [cars for cars in standing.values() if len(set(cars)) == 2]
    assert 20 <= len(crashes) <= 120
    assert len(standing) - len(crashes) > 100
    full = [cars for cars in crashes if len(cars) == 2 * STOP_REPORTS]
    assert len(full) >= len(crashes) - 4  # some began before or end after
    assert all(abs(a - b) == 1 for cars in crashes for a, b in [sorted(set(cars))])


def test_an_odd_number_of_cars_leaves_the_last_one_without_a_partner():
    reports = LinearRoadCars(seed=1, cars=3).reports(0, np.arange(2, 30_000, 3))
    assert (reports["vid"] == 2).all()
    assert 0.01 < (reports["speed"] == 0).mean() < 0.03


@pytest.mark.parametrize("settings", [{"cars": 1}, {"xways": 0}, {"partitions": 0}])
def test_impossible_settings(settings: dict[str, int]):
    with pytest.raises(UsageError, match="at least"):
        LinearRoadCars(seed=1, **settings)
