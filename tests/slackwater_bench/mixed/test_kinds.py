"""What is wrong in a sink of a mixed fleet is found."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest

from slackwater_bench.mixed.files import ROWS_A_SECOND, _table
from slackwater_bench.mixed.kinds import (
    Dashboards,
    Kind,
    Sessions,
    Silent,
    Slow,
    Tables,
    TenSeconds,
    fleet_of,
)
from slackwater_bench.mixed.shape import RATE

START = datetime(2026, 1, 1, tzinfo=UTC)


def windows(count: int, size: int = 10 * RATE) -> list[dict[str, Any]]:
    return [
        {
            "window_end": START + timedelta(seconds=10 * (place + 1)),
            "rows": size,
            "low": place * size,
            "high": (place + 1) * size - 1,
        }
        for place in range(count)
    ]


def mistakes(kind: Kind, rows: list[dict[str, Any]]) -> list[str]:
    return kind.mistakes(pa.Table.from_pylist(rows))


def test_right_windows_have_no_mistakes() -> None:
    assert mistakes(TenSeconds(), windows(4)) == []


def test_the_first_window_may_have_begun_before_its_source() -> None:
    rows = windows(4)
    rows[0]["rows"] = 3
    assert mistakes(TenSeconds(), rows) == []


@pytest.mark.parametrize("change", [{"rows": 999}, {"high": 2000}])
def test_a_window_with_other_rows_is_wrong(change: dict[str, Any]) -> None:
    rows = windows(4)
    rows[2] |= change
    assert len(mistakes(TenSeconds(), rows)) == 1


def test_a_window_that_is_missing_or_doubled_is_wrong() -> None:
    rows = windows(4)
    assert len(mistakes(TenSeconds(), [rows[0], rows[1], rows[3]])) == 1
    assert mistakes(TenSeconds(), [*rows, rows[2]]) == ["1 windows came twice"]


def test_a_dashboard_shows_a_window_many_times() -> None:
    minute = timedelta(minutes=1)
    rows = [row | {"window_end": START + n * minute} for n, row in enumerate(windows(4))]
    whole = [row | {"rows": 60 * RATE, "high": row["low"] + 60 * RATE - 1} for row in rows]
    assert mistakes(Dashboards(), [*rows, *whole]) == []
    assert len(mistakes(Dashboards(), rows)) == 2  # the first and the last may be parts


def test_sessions_and_values_are_counted() -> None:
    sessions = [{"key": key, "rows": 50} for key in range(3)]
    assert mistakes(Sessions(), sessions) == []
    assert mistakes(Sessions(), [*sessions, {"key": 4, "rows": 49}]) == [
        "session 4: 49 rows",
        "sessions: 1 missing, 0 too many",
    ]
    assert mistakes(Tables(), [{"value": 0}, {"value": 0}]) == ["values: 0 missing, 1 too many"]


def test_files_hold_neighbouring_values() -> None:
    first, second = _table(100.0, 0), _table(101.0, 1)
    assert first.num_rows == second.num_rows == ROWS_A_SECOND
    values = pa.concat_tables([first, second]).column("value").to_pylist()
    assert values == list(range(2 * ROWS_A_SECOND))


def test_a_fleet_of_so_many_has_all_kinds() -> None:
    usual = {type(kind) for kind in fleet_of(1, None, 0).values()}
    found = list(fleet_of(1, None, 150, busy=20, slow=30).values())
    assert len(found) == 200
    assert {type(kind) for kind in found} == usual | {Silent, Slow}
    assert sum(isinstance(kind, Silent) for kind in found) == 150
    assert sum(isinstance(kind, Slow) for kind in found) == 30


@pytest.mark.parametrize("sinks", [0, 3, 6])
def test_the_others_are_the_same_beside_any_number_of_sinks(sinks: int) -> None:
    with_sinks, usual = fleet_of(1, sinks, 0), fleet_of(1, None, 0)
    names = {name for name in with_sinks if "sink" in name}
    assert len(names) == sinks
    assert with_sinks.keys() - names == usual.keys() - {"slow_sink_0"}
