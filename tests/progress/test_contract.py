"""What every estimator must keep. New estimators are found by their file."""

import math
from itertools import pairwise

import numpy as np
import pytest

from slackwater import progress
from slackwater.core.errors import UsageError
from slackwater.progress import DelayStats, SweepEstimator

NAMES = progress.names()


def taught(name: str, epochs: int = 60, seed: int = 1, **parameters: float) -> SweepEstimator:
    rng = np.random.default_rng(seed)
    estimator = progress.load(name, **parameters)
    for lag_s, sweep_s in rng.uniform(0.01, 0.05, (epochs, 2)).tolist():
        estimator.observe(DelayStats(100, 100 * lag_s, 101 * lag_s**2, lag_s))
        estimator.close_epoch(sweep_s)
    return estimator


def test_the_published_ones_and_the_default_are_there() -> None:
    assert {"paper", "linear", progress.DEFAULT} <= set(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_knows_nothing_before_it_was_told_anything(name: str) -> None:
    estimator = progress.load(name)
    assert estimator.name == name
    assert estimator.estimate() is None
    estimator.close_epoch(None)
    assert estimator.estimate() is None


@pytest.mark.parametrize("name", NAMES)
def test_frontier_lags_alone_are_enough(name: str) -> None:
    estimator = progress.load(name)
    for lag_ms in (20, 30, 25, 20):
        estimator.observe(DelayStats.of_lag(lag_ms / 1e3))
        estimator.close_epoch(None)
    delay = estimator.estimate()
    assert delay is not None
    assert 0.01 < delay.mean_s < 0.05


@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_distributions(name: str) -> None:
    delay = taught(name).estimate()
    assert delay is not None
    times = np.linspace(-0.1, 0.3, 81).tolist()
    chances = [delay.chance(x) for x in times]
    assert all(0 <= a <= b <= 1 for a, b in pairwise(chances))
    assert all(delay.remaining(x) >= 0 for x in times)
    assert delay.remaining(-5.0) == pytest.approx(delay.mean_s + 5.0)
    narrow, wide = delay.interval(0.5), delay.interval(0.99)
    assert narrow[0] <= narrow[1]
    assert narrow[1] - narrow[0] <= wide[1] - wide[0]
    assert delay.best_wait(0.0) == 0.0
    assert delay.best_wait(10.0) >= 0.0


@pytest.mark.parametrize("name", NAMES)
def test_same_observations_same_prediction(name: str) -> None:
    first, second = taught(name).estimate(), taught(name).estimate()
    assert first is not None
    assert second is not None
    assert first.mean_s == second.mean_s
    assert first.interval(0.9) == second.interval(0.9)


@pytest.mark.parametrize("name", NAMES)
def test_figures_that_are_no_numbers_are_dropped(name: str) -> None:
    clean, dirty = taught(name), taught(name)
    for bad in (math.nan, math.inf, -math.inf):
        dirty.observe(DelayStats.of_lag(bad))
        dirty.observe(DelayStats(1, bad, 1.0))
    first, second = clean.estimate(), dirty.estimate()
    assert first is not None
    assert second is not None
    assert first.mean_s == second.mean_s
    dirty.close_epoch(math.nan)
    after = dirty.estimate()
    assert after is not None
    assert math.isfinite(after.mean_s)


@pytest.mark.parametrize("name", NAMES)
def test_constant_delays_are_learnt_exactly(name: str) -> None:
    estimator = progress.load(name, history=10)
    for _ in range(50):
        estimator.observe(DelayStats.of_lag(0.15))
        estimator.close_epoch(0.15)
    delay = estimator.estimate()
    assert delay is not None
    assert delay.mean_s == pytest.approx(0.15)
    assert delay.best_wait(1.0) == pytest.approx(0.15, abs=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"history": 1}, "history must be at least 2"),
        ({"confidence": 1.0}, "confidence must lie between 0 and 1"),
        ({"confidnce": 0.9}, "unknown key 'confidnce'; did you mean 'confidence'"),
    ],
)
def test_a_wrong_parameter_is_one_clear_line(
    name: str, parameters: dict[str, float], message: str
) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        progress.load(name, **parameters)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("calibratd", "Did you mean 'calibrated'?"),
        ("slack", "unknown estimator 'slack'"),
        ("no.such/thing", "unknown estimator"),
        ("math:sqrt", "is not an estimator"),
    ],
)
def test_a_wrong_name_is_one_clear_line(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        progress.load(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_users_own_is_named_by_its_path() -> None:
    assert progress.load("slackwater.progress.paper:Paper").name == "paper"
