"""Running statistics against slow, obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.statistics.online import Moments, Smoothed


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
