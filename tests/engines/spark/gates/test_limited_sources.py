"""Rows become files or bytes, and never more than the user allows."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from slackwater.engines.spark.gates.limited_sources import GROWTH, Extent, OwnLimit, Unit
from slackwater.engines.spark.gates.read_limits import ReadLimits

UNITS = st.sampled_from(["rows", "files", "bytes"])
ROWS = st.integers(1, 10**7)
MOST = st.none() | st.integers(1, 10**9)


@st.composite
def extents(draw: st.DrawFn) -> Extent:
    files = draw(st.integers(1, 5000))
    return Extent(draw(st.integers(0, 10**6)), files, files * draw(st.integers(1, 10**6)))


@given(unit=UNITS, most=MOST, rows=ROWS, read=st.none() | extents())
def test_a_users_own_limit_is_never_exceeded_and_something_is_read(
    unit: Unit, most: int | None, rows: int, read: Extent | None
) -> None:
    limit = OwnLimit(unit, most).at_most(rows, read)
    assert 1 <= limit <= (most or limit)


@given(unit=st.sampled_from(["files", "bytes"]), rows=ROWS, read=extents())
def test_files_like_the_last_ones_have_no_more_rows_than_wanted(
    unit: Unit, rows: int, read: Extent
) -> None:
    limit = OwnLimit(unit).at_most(rows, read)
    if limit > 1:  # less than a file cannot be read
        assert limit * read.rows <= rows * read.amount(unit)
    assert limit <= GROWTH * read.amount(unit), "the next files may be fuller"


@given(rows=ROWS, read=extents())
def test_rows_need_no_translation(rows: int, read: Extent) -> None:
    assert OwnLimit("rows").at_most(rows, read) == rows


def test_the_first_files_are_read_one_by_one_and_then_faster() -> None:
    """Files without rows say nothing of others, and must not hold anything up."""
    own, read, limits = OwnLimit("files"), None, []
    for _ in range(4):
        limits.append(own.at_most(1000, read))
        read = Extent(0, limits[-1], 10)
    assert limits == [1, 10, 100, 1000]


class Hidden:
    """An execution that shows nothing, and does not say why."""

    def uniqueSources(self) -> None:
        raise AssertionError


def test_a_query_whose_sources_are_hidden_is_not_limited_and_goes_on() -> None:
    nothing: Any = None
    limits = ReadLimits(nothing, Hidden())
    limits.set_rows(5)
    assert limits.are(5)
    assert limits.are_lifted
