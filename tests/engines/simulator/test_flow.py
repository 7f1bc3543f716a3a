"""Bulk arithmetic of queues."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from slackwater.engines.simulator.flow import fair_shares, run_paths

amounts = st.lists(st.floats(0, 10), min_size=6, max_size=6)


@given(amounts, st.floats(0.1, 30))
def test_shares_are_work_conserving_and_within_bounds(wanted: list[float], total_s: float) -> None:
    wanted_s = np.array(wanted).reshape(2, 3)
    most_s, weights = np.full((2, 3), 4.0), np.array([[1.0, 2.0, 1.0], [5.0, 1.0, 1.0]])
    shares = fair_shares(wanted_s, most_s, total_s, weights)
    limits = np.minimum(wanted_s, most_s)
    assert np.all(shares <= limits + 1e-9)
    assert shares.sum() <= total_s + 1e-6
    assert shares.sum() >= 0.95 * min(total_s, limits.sum()) - 1e-6


@given(amounts, st.floats(0.0, 40), st.integers(1, 2))
def test_paths_use_their_time_and_run_no_deeper_than_told(
    gaps: list[float], budget_s: float, depth: int
) -> None:
    before = np.cumsum(np.array(gaps).reshape(2, 3), axis=1)[:, ::-1].copy()  # falling
    taken_s = np.array([[1.0, 2.0], [0.5, 0.25]])
    given_s = np.full(2, budget_s)
    done, left_s = run_paths(before, taken_s, given_s, np.array([2, depth]))
    assert np.all(np.diff(done, axis=1) <= 1e-9)
    used_s = ((done - before)[:, 1:] * taken_s).sum(axis=1)
    np.testing.assert_allclose(used_s, budget_s - left_s, atol=1e-9)
    if depth == 1:
        assert done[1, 2] == before[1, 2]
    idle = left_s > 1e-9
    assert np.all(done[0, 0] - done[0, -1] < 1e-6) or not idle[0]
