"""Closed forms of the normal delay against slow, obvious versions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import ndtr

from slackwater.progress import NormalDelay
from slackwater.progress.normal import mean_excess

means = st.floats(-0.5, 2.0)
deviations = st.floats(1e-4, 1.0)
scores = st.floats(-8.0, 6.0)


@given(means, deviations, scores)
def test_remaining_is_the_integral_of_the_tail(mean: float, std: float, z: float) -> None:
    tail, _ = quad(lambda y: ndtr(-y) / ndtr(-z), z, max(z, 0.0) + 8, epsabs=1e-10, limit=200)
    expected = std * tail
    assert NormalDelay(mean, std).remaining(mean + z * std) == pytest.approx(expected, rel=1e-6)


@given(st.floats(0.0, 1e15))
def test_the_far_tail_is_stable(z: float) -> None:
    excess = float(mean_excess(z))
    # Birnbaum's and Sampford's bounds of the ratio, minus z, in forms that do not cancel.
    lower = 2 / (np.sqrt(z * z + 8) + z)
    upper = 2 / (np.sqrt(z * z + 4) + z)
    assert lower * (1 - 1e-9) <= excess <= upper * (1 + 1e-9)


def test_the_series_joins_the_closed_form() -> None:
    below, above = mean_excess([199.9999, 200.0001])
    assert above == pytest.approx(below, rel=2e-6)
    assert above < below


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=30))
def test_excess_never_grows(scores: list[float]) -> None:
    excess = mean_excess(np.sort(scores))
    assert np.all(excess >= 0)
    assert np.all(np.diff(excess) <= 1e-9 * excess[:-1])


@given(means, deviations, st.floats(0.01, 0.999))
def test_an_interval_holds_its_share(mean: float, std: float, confidence: float) -> None:
    delay = NormalDelay(mean, std)
    low, high = delay.interval(confidence)
    assert delay.chance(high) - delay.chance(low) == pytest.approx(confidence, abs=1e-9)


@given(means, st.floats(0.0, 0.5), st.floats(0.0, 5.0))
def test_best_wait_is_the_cheapest(mean: float, std: float, waste: float) -> None:
    delay = NormalDelay(mean, std)

    def cost(wait: float) -> float:
        return wait + (1 - delay.chance(wait)) * waste

    best = delay.best_wait(waste)
    assert best >= 0
    tried = np.linspace(0.0, max(0.0, mean) + 6 * std + 0.1, 400).tolist()
    assert cost(best) <= min(map(cost, tried)) + 1e-9


def test_a_certain_delay() -> None:
    delay = NormalDelay(0.2, 0.0)
    assert delay.remaining(0.05) == pytest.approx(0.15)
    assert delay.remaining(0.3) == 0.0
    assert (delay.chance(0.19), delay.chance(0.2)) == (0.0, 1.0)
    assert delay.interval(0.95) == (0.2, 0.2)
    assert (delay.best_wait(1.0), delay.best_wait(0.1)) == (0.2, 0.0)
