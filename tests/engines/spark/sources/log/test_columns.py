"""Texts and JSON become columns."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.sources.log.columns import JsonColumns, text_column

UTC_US = pa.timestamp("us", "UTC")
NOON = datetime(2024, 5, 1, 12, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "kind", "expected"),
    [
        (b"7", pa.int32(), 7),
        (b"-2.5", pa.float64(), -2.5),
        (b"true", pa.bool_(), True),
        (b"1.50", pa.decimal128(8, 2), Decimal("1.50")),
        (b"2024-05-01", pa.date32(), date(2024, 5, 1)),
        ("zwölf".encode(), pa.string(), "zwölf"),
        (b"\xff\x00", pa.binary(), b"\xff\x00"),
        (b"2024-05-01T12:00:00.5", UTC_US, NOON),
        (b"2024-05-01 12:00:00.5Z", UTC_US, NOON),
        (b"2024-05-01T14:00:00.500+02:00", UTC_US, NOON),
        (b"2024-05-01T12:00:00.5", pa.timestamp("us"), NOON.replace(tzinfo=None)),
    ],
)
def test_a_text_becomes_what_its_column_is(text: bytes, kind: pa.DataType, expected: Any) -> None:
    column = text_column("here", pa.array([text, None]), kind, "iso", "fail")
    assert column.type == kind
    assert column.to_pylist() == [expected, None]


@pytest.mark.parametrize(
    ("unit", "text"),
    [("s", b"1714564800.5"), ("ms", b"1714564800500"), ("us", b"1714564800500000")],
)
def test_times_may_be_numbers(unit: Any, text: bytes) -> None:
    assert text_column("here", pa.array([text]), UTC_US, unit, "fail").to_pylist() == [NOON]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (b"seven", pa.int32()),
        (b"300", pa.int8()),
        (b"", pa.int64()),
        (b"\xff", pa.string()),
        (b"yesterday", UTC_US),
    ],
)
def test_what_does_not_fit_fails_or_is_null(text: bytes, kind: pa.DataType) -> None:
    values = pa.array([None, text, None], pa.binary())
    with pytest.raises(SlackwaterError, match=r"here: .*malformed='null'") as told:
        text_column("here", values, kind, "iso", "fail")
    assert "\n" not in str(told.value)
    assert text_column("here", values, kind, "iso", "null").to_pylist() == [None] * 3


JSON_SCHEMA = pa.schema(
    [
        ("a", pa.int64()),
        ("s", pa.string()),
        ("t", UTC_US),
        ("d", pa.date32()),
        ("nested", pa.struct([("x", pa.float64())])),
        ("list", pa.list_(pa.int32())),
    ]
)


def test_json_becomes_columns() -> None:
    columns = JsonColumns(JSON_SCHEMA, "iso", "fail")
    values = [
        b'{"a": 1, "s": "x", "t": "2024-05-01T12:00:00.5Z", "d": "2024-05-01", "more": [1]}',
        b'{"nested": {"x": 1},\n "list": [1, null]}',
        None,
        b"  ",
    ]
    rows = columns.parse(values, "here").to_pylist()
    empty = dict.fromkeys(JSON_SCHEMA.names)
    assert rows == [
        empty | {"a": 1, "s": "x", "t": NOON, "d": date(2024, 5, 1)},
        empty | {"nested": {"x": 1.0}, "list": [1, None]},
        empty,
        empty,
    ]


def test_json_times_may_be_numbers() -> None:
    columns = JsonColumns(pa.schema([("t", UTC_US)]), "ms", "fail")
    assert columns.parse([b'{"t": 1714564800500}'], "here").to_pylist() == [{"t": NOON}]


BROKEN = [
    b"null",
    b"[1]",
    b'{"a": 1} {"a": 2}',
    b'{"a": 1} null',
    b'{"a": 1',
    b'{"a": "one"}',
    b'{"a": 1.5}',
    b'{"a": 1, "a": 2}',
    b'{"s": "\xff"}',
    b'{"t": "yesterday"}',
    b"nonsense",
]


@pytest.mark.parametrize("broken", BROKEN)
def test_broken_json_fails_or_is_null(broken: bytes) -> None:
    values = [b'{"a": 1}', broken, b'{"a": 2}']
    with pytest.raises(SlackwaterError, match=r"here: .* does not fit the schema") as told:
        JsonColumns(JSON_SCHEMA, "iso", "fail").parse(values, "here")
    assert "\n" not in str(told.value)
    table = JsonColumns(JSON_SCHEMA, "iso", "null").parse(values, "here")
    assert table.column("a").to_pylist() == [1, None, 2]


@given(st.lists(st.one_of(st.none(), st.sampled_from(BROKEN), st.just(b'{"a": 5}')), max_size=40))
@settings(deadline=None)
def test_every_value_is_one_row_whatever_is_broken(values: list[bytes | None]) -> None:
    table = JsonColumns(JSON_SCHEMA, "iso", "null").parse(values, "here")
    assert table.column("a").to_pylist() == [5 if v == b'{"a": 5}' else None for v in values]
