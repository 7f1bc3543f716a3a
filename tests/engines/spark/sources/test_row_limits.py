"""How the rows of a micro-batch are shared among streams."""

from hypothesis import given
from hypothesis import strategies as st

from slackwater.engines.spark.sources.row_limits import split_rows

BACKLOGS = st.lists(st.integers(0, 1000), min_size=1, max_size=8)


@given(rows=st.integers(1, 3000), backlogs=BACKLOGS, turn=st.integers(0, 10**6))
def test_all_rows_are_shared_and_no_stream_gets_more_than_it_has(
    rows: int, backlogs: list[int], turn: int
) -> None:
    shares = split_rows(rows, backlogs, turn)
    assert sum(shares) == min(rows, sum(backlogs))
    assert all(0 <= share <= backlog for share, backlog in zip(shares, backlogs, strict=True))


@given(rows=st.integers(1, 3000), backlogs=BACKLOGS)
def test_shares_are_in_proportion(rows: int, backlogs: list[int]) -> None:
    fair = [min(rows / max(sum(backlogs), 1), 1) * backlog for backlog in backlogs]
    for share, expected in zip(split_rows(rows, backlogs, 0), fair, strict=True):
        assert abs(share - expected) <= len(backlogs)


def test_a_limit_of_one_row_serves_every_stream() -> None:
    """The turn is the number of rows read so far, so it moves on by one each time."""
    served = {tuple(split_rows(1, [900, 900, 2], turn)) for turn in range(3)}
    assert served == {(1, 0, 0), (0, 1, 0), (0, 0, 1)}
