"""What batches cost, against slow, obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.statistics.batch_cost import HARDLY_VARY, BatchCost, SteeredBatchCost

ROWS = st.integers(0, 100_000)
SECONDS = st.floats(0.001, 10, allow_nan=False)


@given(st.lists(st.tuples(ROWS, SECONDS), min_size=3, max_size=40))
def test_batch_cost_is_the_weighted_least_squares_line(batches: list[tuple[int, float]]) -> None:
    cost = BatchCost(forget=0.9)
    for rows, seconds in batches:
        cost.update(rows, seconds)
    assert cost.fixed_s is not None
    assert cost.per_row_s is not None
    assert cost.fixed_s >= 0
    assert cost.per_row_s >= 0
    x, y = np.array(batches, dtype=float).T
    weights = 0.9 ** np.arange(len(x) - 1, -1, -1)
    mean = np.average(x, weights=weights)
    spread = np.sum(weights * (x - mean) ** 2)
    if spread < 1.01 * HARDLY_VARY * np.sum(weights * x**2) + 1:
        return  # nothing to fit
    slope = np.sum(weights * (x - mean) * (y - np.average(y, weights=weights))) / spread
    fixed = np.average(y, weights=weights) - slope * mean
    if slope > 1e-9 and fixed > 1e-9:  # else the bounds at zero apply
        assert cost.per_row_s == pytest.approx(slope, rel=1e-3, abs=1e-9)
        assert cost.fixed_s == pytest.approx(fixed, rel=1e-3, abs=1e-6)


def test_equal_batches_are_all_fixed_cost() -> None:
    cost = BatchCost()
    for _ in range(5):
        cost.update(1000, 0.25)
    assert cost.fixed_s == pytest.approx(0.25)
    assert cost.per_row_s == 0.0


def test_cold_batches_count_only_until_there_is_another() -> None:
    cost, warm = BatchCost(cold=2), BatchCost()
    for seconds in (9.0, 5.0, 0.3, 0.4):
        cost.update(1000, seconds)
    for seconds in (0.3, 0.4):
        warm.update(1000, seconds)
    assert cost.fixed_s == warm.fixed_s


@given(st.lists(SECONDS, min_size=1, max_size=40))
def test_batches_of_one_size_are_never_all_fixed_cost(durations: list[float]) -> None:
    cost = SteeredBatchCost()
    for seconds in durations:
        cost.update(1000, seconds)
    assert cost.per_row_s is not None
    assert cost.per_row_s > 0
    assert cost.fixed_s is not None
    assert cost.fixed_s < cost.duration_s


def test_nothing_seen_is_not_zero() -> None:
    assert BatchCost().fixed_s is None
    assert SteeredBatchCost().fixed_s is None
    assert SteeredBatchCost().rows_in(1.0) is None
