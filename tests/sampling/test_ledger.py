"""The ledger: what is handed out when, and what it stands for."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from slackwater.sampling import CellPlan, Grid, Ledger, Plan
from slackwater.sampling.ledger import chances

grids = st.sampled_from(
    [Grid(3_000_000, 3_000_000), Grid(2_000_000, 1_000_000, 300_000), Grid(5_000_000, 3_000_000)]
)
waits = st.integers(0, 8_000_000)
cells = st.builds(
    CellPlan,
    wait_us=waits,
    rates=st.lists(st.floats(0.05, 1.0), min_size=1, max_size=6).map(tuple),
    shares=st.lists(st.floats(0.3, 1.0), max_size=3).map(tuple),
)


def reaches(grid: Grid) -> range:
    """How far before a window's end its cells end."""
    return range(0, grid.windows_per_event * grid.slide_us, grid.slide_us)


@given(grid=grids, plans=st.lists(cells, min_size=1, max_size=8), steps=st.data())
def test_windows_close_when_their_wait_is_over_and_not_before(
    grid: Grid, plans: list[CellPlan], steps: st.DataObject
) -> None:
    now_us = 50_000_000
    ledger = Ledger.begin(Plan(grid, plans[0], 0), now_us)
    for cell in plans:
        now_us += steps.draw(st.integers(0, 6_000_000) | st.just(200_000_000))
        after = ledger.advance(Plan(grid, cell, 0), now_us)
        assert after.ceiling_us >= ledger.ceiling_us
        closed = range(ledger.ceiling_us, after.ceiling_us, grid.slide_us)
        longest = max(after.plan_of(after.ceiling_us - back).wait_us for back in reaches(grid))
        for end in closed:  # a row that was in time for one of a window's cells counts
            assert all(end + after.plan_of(end - back).wait_us <= now_us for back in reaches(grid))
        assert after.ceiling_us + longest > now_us
        # What holds for a cell whose rows were handed out is never changed.
        assert after.plan_of(ledger.ceiling_us) == ledger.plan_of(ledger.ceiling_us)
        assert Ledger.of_json(after.to_json()) == after
        ledger = after


@given(grid=grids, cell=cells, seed=st.integers(0, 1000))
def test_weights_stand_for_the_rows_that_are_not_there(
    grid: Grid, cell: CellPlan, seed: int
) -> None:
    """Of rows that arrive at once: on average each window's weights add up to its rows, once the
    share that is believed to be late has been taken out."""
    rng = np.random.default_rng(seed)
    event_us = np.sort(rng.integers(60_000_000, 90_000_000, 40_000))
    ledger = Ledger.begin(Plan(grid, cell, 0), 100_000_000)
    weighed = ledger.weigh(event_us, event_us, rng.random(len(event_us)))
    before_end = grid.ends_after(event_us) - 1 - event_us
    for window in range(grid.windows_per_event):
        table = np.array([*cell.shares, 1.0])
        back = (before_end + window * grid.slide_us) // grid.substream_us
        share = table[np.minimum(back, len(table) - 1)]
        total = (weighed.weights[weighed.keep, window] * share[weighed.keep]).sum()
        assert abs(total / len(event_us) - 1) < 0.15


def test_a_row_that_is_too_late_for_a_window_may_be_in_time_for_the_next() -> None:
    grid = Grid(2_000_000, 1_000_000)
    ledger = Ledger.begin(Plan(grid, CellPlan(wait_us=100_000), 0), 50_000_000)
    event_us = np.array([10_900_000, 10_900_000, 10_900_000])
    arrival_us = np.array([11_100_000, 11_100_001, 12_100_001])  # windows end at 11 and at 12
    weights = ledger.weigh(event_us, arrival_us, np.zeros(3)).weights
    assert weights.tolist() == [[1.0, 1.0], [0.0, 1.0], [0.0, 0.0]]


def test_after_a_pause_the_ceiling_jumps_and_the_ledger_stays_small() -> None:
    grid = Grid(3_000_000, 3_000_000)
    ledger = Ledger.begin(Plan(grid, CellPlan(wait_us=1), 0), 0)
    for step in range(200):
        plan = Plan(grid, CellPlan(wait_us=1 + step % 2), 0)
        ledger = ledger.advance(plan, (step + 1) * 3_000_000 + 5)
    assert len(ledger.plans) < 30
    assert ledger.advance(None, 10**13).ceiling_us > 10**13 - 3_000_000


def test_chances_are_even_and_differ_between_partitions() -> None:
    index = np.arange(100_000)
    first, second = chances(1, 0, index), chances(1, 1, index)
    assert np.abs(np.histogram(first, 20, (0, 1))[0] / 5000 - 1).max() < 0.06
    assert abs(np.corrcoef(first, second)[0, 1]) < 0.02
