"""Reader of Linear Road's original format: good files, and what it says about broken ones."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.workloads.linear_road_cars import REPORT_COLUMNS
from slackwater_bench.workloads.linear_road_file import LinearRoadFile, read_file

REPORTS = [
    "0,0,107,32,0,0,0,2,11000,-1,-1,-1,-1,-1,-1",
    "0,0,109,0,0,4,1,99,527999,-1,-1,-1,-1,-1,-1",
    "0,30,107,32,1,1,0,2,12408,-1,-1,-1,-1,-1,-1",
]
QUERIES = [
    "2,10,107,-1,-1,-1,-1,-1,-1,1,-1,-1,-1,-1,-1",
    "3,11,107,-1,0,-1,-1,-1,-1,2,-1,-1,-1,-1,17",
    "4,12,107,-1,0,-1,-1,-1,-1,3,5,9,2,600,-1",
]


def write(folder: Path, lines: Sequence[str], end: str = "\n") -> str:
    path = folder / "cardatapoints.out"
    path.write_text("".join(line + end for line in lines), newline="")
    return str(path)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_position_reports_are_read_and_queries_are_not(tmp_path: Path, end: str):
    path = write(tmp_path, [REPORTS[0], *QUERIES, *REPORTS[1:]], end)
    table = read_file(path, start_s=1000.5)
    assert table.column_names == [*REPORT_COLUMNS, "event_time"]
    assert table["vid"].to_pylist() == [107, 109, 107]
    assert table["pos"].to_pylist() == [11000, 527999, 12408]
    assert table["event_time"].to_pylist() == [
        datetime.fromtimestamp(t, UTC) for t in (1000.5, 1000.5, 1030.5)
    ]


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("0,1,2", "line 3: 3 values, not 15"),
        (REPORTS[0] + ",1", "line 3: 16 values, not 15"),
        (REPORTS[0].replace("32", "fast"), "line 3: speed must be a whole number.* not 'fast'"),
        (REPORTS[0].replace("32", ""), "line 3: speed must be a whole number.* not ''"),
        (REPORTS[0].replace("107", "3000000000"), "line 3: vid must be .* of 32 bits"),
        (REPORTS[0].replace("11000", "1.5"), "line 3: pos must be a whole number"),
        (REPORTS[0].replace("32", "-1"), "line 3: speed .* must be 0 to 100, not -1"),
        (REPORTS[1].replace(",1,99,", ",2,99,"), "line 3: dir .* must be 0 to 1, not 2"),
        (REPORTS[1].replace(",1,99,", ",1,100,"), "line 3: seg .* must be 0 to 99, not 100"),
    ],
)
def test_broken_lines_are_named(tmp_path: Path, line: str, complaint: str):
    path = write(tmp_path, [REPORTS[0], QUERIES[0], line, REPORTS[1]])
    with pytest.raises(UsageError, match=complaint) as error:
        read_file(path)
    assert path in str(error.value)
    assert "\n" not in str(error.value)


def test_files_without_reports(tmp_path: Path):
    with pytest.raises(UsageError, match="no position report"):
        read_file(write(tmp_path, QUERIES))
    with pytest.raises(UsageError, match="no lines of 15"):
        read_file(write(tmp_path, []))
    with pytest.raises(UsageError, match="cannot read"):
        read_file(tmp_path / "nothing.dat")
    with pytest.raises(UsageError, match="cannot read"):
        read_file(tmp_path)


def test_rows_are_replayed_round_and_round_in_the_order_of_the_file(tmp_path: Path):
    path = write(tmp_path, REPORTS)
    index = np.array([0, 1, 2, 3, 31])
    whole = LinearRoadFile(path=path, seed=1)
    assert whole.columns(0, index)["time"].to_pylist() == [0, 0, 30, 0, 0]
    split = LinearRoadFile(path=path, seed=1, partitions=2)
    numbers = [split.reports(p, np.arange(3))["pos"].tolist() for p in range(2)]
    assert numbers == [[11000, 12408, 527999], [527999, 11000, 12408]]


def test_no_partitions_are_refused(tmp_path: Path):
    with pytest.raises(UsageError, match="partition"):
        LinearRoadFile(path=write(tmp_path, REPORTS), partitions=0)
