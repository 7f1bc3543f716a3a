"""Files of taxi trips: what is read, what is refused, and how they are replayed."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.nyc_taxi_file import COLUMNS, NycTaxiFile, read_file
from slackwater_bench.workloads.nyc_taxi_trips import NUMBERS, NycTaxiTrips


def line(number: int, **other: str) -> str:
    """A trip as a line of the file; ``number`` is its distance in miles."""
    values = {
        "medallion": f"{number:032X}",
        "hack_license": f"{number + 1:032X}",
        "pickup_datetime": "2013-01-01 00:00:00",
        "dropoff_datetime": "2013-01-01 00:10:00",
        "trip_time_in_secs": "600",
        "trip_distance": f"{number}.00",
        "pickup_longitude": "-73.956528",
        "pickup_latitude": "40.716976",
        "dropoff_longitude": "-73.962440",
        "dropoff_latitude": "40.715008",
        "payment_type": "CSH",
        "fare_amount": "3.50",
        "surcharge": "0.50",
        "mta_tax": "0.50",
        "tip_amount": "0.00",
        "tolls_amount": "0.00",
        "total_amount": "4.50",
    }
    return ",".join((values | other).values()) + "\n"


@pytest.fixture
def trips(tmp_path: Path) -> Path:
    path = tmp_path / "trips.csv"
    path.write_text("".join(map(line, range(1, 8))))
    return path


def test_a_file_without_header(trips: Path):
    table = read_file(trips)
    assert table.column_names == list(COLUMNS)
    assert table.num_rows == 7
    assert table["dropoff_datetime"].type == pa.timestamp("s")
    first = table.slice(0, 1).to_pylist()[0]
    assert (first["trip_time_in_secs"], first["trip_distance"]) == (600, 1.0)
    assert (first["pickup_longitude"], first["total_amount"]) == (-73.956528, 4.5)
    assert first["medallion"] == "0" * 31 + "1"


def test_a_header_may_have_spaces_other_columns_and_another_order(trips: Path, tmp_path: Path):
    lines = trips.read_text().splitlines()
    names = [*reversed(COLUMNS), "rate_code"]
    rows = [", ".join(names), *(",".join([*reversed(x.split(",")), "9"]) for x in lines)]
    other = tmp_path / "other.csv"
    other.write_text("\r\n".join(rows) + "\r\n")
    assert read_file(other).equals(read_file(trips))


def test_a_compressed_file(trips: Path, tmp_path: Path):
    packed = tmp_path / "trips.csv.gz"
    packed.write_bytes(gzip.compress(trips.read_bytes()))
    assert read_file(packed).equals(read_file(trips))


@pytest.mark.parametrize(("rows", "found"), [(1, 1), (5, 5), (7, 7), (100, 7)])
def test_only_the_first_rows(trips: Path, rows: int, found: int):
    assert read_file(trips, rows)["trip_distance"].to_pylist() == list(range(1, found + 1))


def test_an_empty_cell_is_null(tmp_path: Path):
    path = tmp_path / "trips.csv"
    path.write_text(line(1, dropoff_latitude="", trip_time_in_secs=""))
    assert read_file(path)["dropoff_latitude"].to_pylist() == [None]
    numbers = NycTaxiFile(path=str(path), seed=1).numbers(0, np.array([0]))
    assert np.isnan([numbers["dropoff_latitude"][0], numbers["trip_time_in_secs"][0]]).all()


HEADER = ",".join(COLUMNS) + "\n"


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "Empty CSV file"),
        ("\n\n", "has no rows"),
        (HEADER, "has no rows"),
        ("a,b,c\n", "Expected 17 columns, got 3"),
        (line(1) + "1,2\n", "Expected 17 columns, got 2"),
        (line(1) + line(2, fare_amount="much"), "column #11.*'much'"),
        (line(1, dropoff_datetime="yesterday"), "'yesterday'"),
        (HEADER.replace("mta_tax", "tax") + line(1), "the header lacks mta_tax"),
    ],
)
def test_broken_files_are_refused_in_one_line(tmp_path: Path, content: str, reason: str):
    path = tmp_path / "trips.csv"
    path.write_text(content)
    with pytest.raises(UsageError, match=reason) as error:
        read_file(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_files_that_cannot_be_opened_are_refused(tmp_path: Path):
    packed = tmp_path / "trips.csv.gz"
    packed.write_text("not compressed")
    for path in (tmp_path / "none.csv", tmp_path, packed):
        with pytest.raises(UsageError, match="cannot read the taxi trips") as error:
            read_file(path)
        assert str(path) in str(error.value)
        assert "\n" not in str(error.value)


def test_a_number_of_rows_must_be_possible(trips: Path):
    with pytest.raises(UsageError, match="at least 1"):
        read_file(trips, 0)


def test_replay_keeps_the_order_and_wraps_round(trips: Path):
    replay = NycTaxiFile(path=str(trips), seed=3)
    miles = replay.columns(0, np.arange(20))["trip_distance"].to_pylist()
    begin = int(miles[0])
    assert miles == [(begin - 1 + n) % 7 + 1 for n in range(20)]
    assert replay.columns(0, np.array([13, 2]))["trip_distance"].to_pylist() == [
        miles[13],
        miles[2],
    ]


def test_seed_and_partition_choose_where_a_replay_begins(trips: Path):
    def first(seed: int, partition: int) -> float:
        replay = NycTaxiFile(path=str(trips), seed=seed)
        return float(replay.numbers(partition, np.array([0]))["trip_distance"][0])

    assert len({first(1, partition) for partition in range(20)}) > 3
    assert len({first(seed, 0) for seed in range(20)}) > 3
    assert first(5, 2) == first(5, 2)


def test_replayed_columns_are_of_the_kind_that_are_generated(trips: Path):
    replay, generated = NycTaxiFile(path=str(trips), seed=1), NycTaxiTrips(seed=1)
    index = np.arange(10)
    columns = replay.columns(0, index)
    types = {name: column.type for name, column in columns.items()}
    assert types == {name: c.type for name, c in generated.columns(0, index).items()}
    assert all(isinstance(column, pa.Array) for column in columns.values())
    numbers = replay.numbers(0, index)
    assert all((columns[name].to_numpy() == numbers[name]).all() for name in NUMBERS)


def test_a_replay_takes_no_more_rows_than_told(trips: Path):
    assert len(NycTaxiFile(path=str(trips), seed=1, rows=3)) == 3
