"""Taxi trips from a file of the DEBS 2015 grand challenge, plain or compressed."""

import os
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyarrow import csv

from slackwater.core.errors import UsageError
from slackwater.traffic import block_generator
from slackwater_bench.workloads.nyc_taxi_trips import NUMBERS, SCHEMA, TEXTS

COLUMNS = (  # in the order of the file, which has no header
    "medallion",
    "hack_license",
    "pickup_datetime",
    "dropoff_datetime",
    "trip_time_in_secs",
    "trip_distance",
    "pickup_longitude",
    "pickup_latitude",
    "dropoff_longitude",
    "dropoff_latitude",
    "payment_type",
    "fare_amount",
    "surcharge",
    "mta_tax",
    "tip_amount",
    "tolls_amount",
    "total_amount",
)

_TYPES = (
    {name: pa.float64() for name in COLUMNS}
    | {name: pa.string() for name in TEXTS}
    | {name: pa.timestamp("s") for name in ("pickup_datetime", "dropoff_datetime")}
    | {"trip_time_in_secs": pa.int64()}
)

Ints = NDArray[np.int64]


def read_file(path: str | Path, rows: int | None = None) -> pa.Table:
    """Return trips of a CSV file, with all 17 columns; a cell that is empty becomes null.

    Parameters
    ----------
    path
        The file; one whose name ends in ``.gz`` or ``.bz2`` is decompressed. With a header, the
        columns may stand in any order, with others between them.
    rows
        Most rows to read, from the first on; None: all. The file of a whole year has 173 million.

    Raises
    ------
    UsageError
        When the file is not there, is not of this form, or has no trips.

    Examples
    --------
    >>> read_file("trips.csv")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: cannot read the taxi trips 'trips.csv': No such file or \
directory
    """
    if rows is not None and rows < 1:
        raise UsageError(f"the number of taxi trips to read must be at least 1, not {rows}")
    try:
        table = _read(str(path), rows)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else _first_line(error)
        raise UsageError(f"cannot read the taxi trips '{path}': {reason}") from None
    except (pa.ArrowInvalid, ValueError) as error:
        raise UsageError(f"the taxi trips '{path}' are broken: {_first_line(error)}") from None
    if table.num_rows == 0:
        raise UsageError(f"the file of taxi trips '{path}' has no rows")
    return table


class NycTaxiFile:
    """Payload generator: replays the trips of a file, in its order, over and over again.

    Their times are those of the traffic. Every partition begins at a row of its own, which the
    seed chooses, and goes back to the first row after the last.

    Parameters
    ----------
    path
        See :func:`read_file`. Every process that reads must see the same file there.
    seed
        Chooses where each partition begins.
    rows
        Most rows to take from the file: each process that reads keeps them in memory, about
        200 bytes a row.
    """

    schema = SCHEMA
    event_time = "dropoff_datetime"

    def __init__(self, *, path: str, seed: int, rows: int = 200_000) -> None:
        self.seed = seed
        self._trips = read_file(path, rows).select([*TEXTS, *NUMBERS]).combine_chunks()

    def __len__(self) -> int:
        return int(self._trips.num_rows)

    def numbers(self, partition: int, index: Ints) -> dict[str, NDArray[np.float64]]:
        """Return the columns ``NUMBERS`` of some trips of one partition; NaN for an empty cell."""
        trips = self._rows(partition, index, NUMBERS)
        return {name: trips[name].to_numpy().astype(np.float64) for name in NUMBERS}

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        trips = self._rows(partition, index, TEXTS + NUMBERS)
        return {name: trips[name].combine_chunks() for name in TEXTS + NUMBERS}

    def _rows(self, partition: int, index: Ints, names: tuple[str, ...]) -> pa.Table:
        begin = block_generator(self.seed, partition, 0, "nyc-taxi-file").integers(len(self))
        return self._trips.select(names).take(pa.array((begin + index) % len(self)))


def _read(path: str, rows: int | None) -> pa.Table:
    header = _header(path)
    missing = set(COLUMNS) - set(header or COLUMNS)
    if missing:
        raise ValueError(f"the header lacks {', '.join(sorted(missing))}")
    layout = csv.ReadOptions(column_names=header or COLUMNS, skip_rows=1 if header else 0)
    types = csv.ConvertOptions(column_types=_TYPES, include_columns=COLUMNS)
    batches, found = [], 0
    with csv.open_csv(path, layout, convert_options=types) as reader:
        for batch in reader:
            batches.append(batch)
            found += batch.num_rows
            if rows is not None and found >= rows:
                break
        return pa.Table.from_batches(batches, reader.schema).slice(0, rows)


def _header(path: str) -> list[str] | None:
    """Return names in the first line; None where it is a trip already."""
    with pa.input_stream(path) as stream:
        line = stream.read(4096).split(b"\n", 1)[0].decode(errors="replace")
    names = [name.strip(" \r\ufeff") for name in line.split(",")]
    return names if set(names) & set(COLUMNS) else None


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]
