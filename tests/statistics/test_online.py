"""Running statistics against slow, obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.metrics import BatchCost, Moments, Smoothed

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
    if spread < 1e-6 * np.sum(weights * x**2) + 1:
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


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=19))
def test_moments_are_plain_until_there_is_something_to_forget(values: list[float]) -> None:
    moments = Moments(weight=0.05)
    for value in values:
        moments.update(value)
    assert moments.mean == pytest.approx(np.mean(values), abs=1e-6)
    if len(values) > 1:
        assert moments.std == pytest.approx(np.std(values), rel=1e-6, abs=1e-3)


def test_moments_forget() -> None:
    moments = Moments(weight=0.1)
    for value in [0.0] * 50 + [10.0] * 100:
        moments.update(value)
    assert moments.mean == pytest.approx(10.0, abs=0.01)


def test_nothing_seen_is_not_zero() -> None:
    assert Moments().mean is None
    assert Smoothed().value is None
    assert BatchCost().fixed_s is None
