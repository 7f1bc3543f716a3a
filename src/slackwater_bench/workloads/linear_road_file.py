"""Position reports from a data file of the original Linear Road generator.

A line has fifteen whole numbers: Type, Time, VID, Spd, XWay, Lane, Dir, Seg, Pos, QID, Sinit,
Send, DOW, TOD, Day. Lines of type 0 are position reports; the others are historical queries.
"""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.linear_road_cars import (
    EXIT_LANE,
    REPORT_COLUMNS,
    REPORT_SCHEMA,
    SEGMENTS,
    Ints,
    Reports,
    arrow_columns,
)

_FIELDS = (*REPORT_COLUMNS, "qid", "sinit", "send", "dow", "tod", "day")
_LARGEST = {  # of a position report; nothing in one is negative
    "speed": 100,
    "xway": 9_999,
    "lane": EXIT_LANE,
    "dir": 1,
    "seg": SEGMENTS - 1,
    "pos": 999_999,
}
_INT = range(-(2**31), 2**31)


class LinearRoadFile:
    """Payload generator: replays the position reports of a file, round and round.

    The feed sets the event times, so a file can be played at any rate; ``time`` keeps what the
    file says. Every process that reads holds the file in memory.

    Parameters
    ----------
    path
        The file; all machines that read must have it.
    partitions
        Of the traffic, so that the stream as a whole has the order of the file.
    seed
        Not used: the rows are given.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".dat") as file:
    ...     _ = file.write("0,0,7,32,0,1,0,1,5300,-1,-1,-1,-1,-1,-1\\n")
    ...     file.flush()
    ...     LinearRoadFile(path=file.name).reports(0, np.arange(2))["vid"].tolist()
    [7, 7]
    """

    schema = REPORT_SCHEMA
    event_time = "event_time"

    def __init__(self, *, path: str, partitions: int = 1, seed: int = 0) -> None:
        if partitions < 1:
            raise UsageError(f"Linear Road needs 1 partition at least, not {partitions}")
        table = read_file(path)
        self.partitions = partitions
        self._rows = {name: table.column(name).to_numpy() for name in REPORT_COLUMNS}
        self._length = table.num_rows

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        return arrow_columns(self.reports(partition, index))

    def reports(self, partition: int, index: Ints) -> Reports:
        """Return the columns as numbers, for the truth."""
        row = (index * self.partitions + partition) % self._length
        return {name: column[row].astype(np.int64) for name, column in self._rows.items()}


def read_file(path: str | Path, *, start_s: float = 0.0) -> pa.Table:
    """Return the position reports of a file, with ``event_time`` = start + Time.

    Parameters
    ----------
    path
        A file in the original format.
    start_s
        When time zero of the file is, seconds since the epoch.

    Raises
    ------
    UsageError
        When the file cannot be read, has no position report, or has a line that is not one.
    """
    table = _parse(Path(path))
    reports = table.filter(pc.equal(table["type"], 0)).select(REPORT_COLUMNS)
    if reports.num_rows == 0:
        raise UsageError(f"'{path}' has no position report, that is no line of type 0")
    if not _plausible(reports):
        raise _complaint(Path(path))
    seconds = reports["time"].cast(pa.int64()).to_numpy()
    event_us = pa.array(seconds * 1_000_000 + round(start_s * 1e6))
    return reports.append_column("event_time", event_us.view(pa.timestamp("us", tz="UTC")))


def _parse(path: Path) -> pa.Table:
    try:
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(column_names=list(_FIELDS)),
            convert_options=csv.ConvertOptions(
                column_types=dict.fromkeys(_FIELDS, pa.int32()), null_values=[]
            ),
        )
    except OSError as error:
        raise UsageError(f"cannot read '{path}': {error.strerror or error}") from None
    except pa.ArrowInvalid:
        raise _complaint(path) from None


def _plausible(reports: pa.Table) -> bool:
    smallest = min(pc.min(reports[name]).as_py() for name in REPORT_COLUMNS)
    return smallest >= 0 and all(
        pc.max(reports[name]).as_py() <= largest for name, largest in _LARGEST.items()
    )


def _complaint(path: Path) -> UsageError:
    """Return what is wrong with the first bad line; only asked once there is one."""
    with path.open(encoding="utf-8", errors="replace") as lines:
        for number, line in enumerate(lines, start=1):
            if line.strip() and (fault := _fault(line)):
                return UsageError(f"'{path}', line {number}: {fault}")
    return UsageError(f"'{path}' has no lines of {len(_FIELDS)} whole numbers")


def _fault(line: str) -> str | None:
    texts = [text.strip() for text in line.split(",")]
    if len(texts) != len(_FIELDS):
        return f"{len(texts)} values, not {len(_FIELDS)}; is it Linear Road's format?"
    for name, text in zip(_FIELDS, texts, strict=True):
        if not text.removeprefix("-").isdecimal() or int(text) not in _INT:
            return f"{name} must be a whole number of 32 bits, not '{text}'"
    row = dict(zip(_FIELDS, map(int, texts), strict=True))
    if row["type"] != 0:
        return None
    for name in REPORT_COLUMNS:
        largest = _LARGEST.get(name, _INT[-1])
        if not 0 <= row[name] <= largest:
            return f"{name} of a position report must be 0 to {largest}, not {row[name]}"
    return None
