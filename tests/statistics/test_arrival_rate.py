"""How fast rows arrive, while a reader is behind, and while the rate changes."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.statistics.arrival_rate import ArrivalRate, CounterRate
from slackwater.traffic import ConstantDelays, Rate, Timeline
from slackwater.traffic.gaps import parse_gaps


def errors(text_gaps: str, seed: int) -> np.ndarray:
    """Of estimates against the true rate, by a reader that gets half of what comes.

    Looks come as micro-batches end: every 0.3 to 1.5 s. The rate changes by up to a factor of
    two every half a minute; the stretch in which it does can only tell a mixture.
    """
    chance = random.Random(seed)
    rate = Rate((0.0, 30.0, 60.0, 90.0), (1000.0, 2000.0, 1000.0, 1500.0))
    timeline = Timeline(
        rate, ConstantDelays(0.05), seed=seed, start_us=0, gaps=parse_gaps(text_gaps)
    )
    estimate, read, at_s, found = ArrivalRate(), 0.0, 0.0, []
    while at_s < 120:
        at_s += chance.uniform(0.3, 1.5)
        arrived = timeline.count(round(at_s * 1e6))
        read += 0.5 * (arrived - read)
        lag = arrived - read
        value = estimate.update(at_s, read + lag)
        truth = rate.per_second[min(int((at_s - 0.05) // 30), 3)]
        if value is not None:
            found.append(value / truth - 1)
    return np.array(found)


@pytest.mark.parametrize("gaps", ["constant", "gamma:2", "exponential"])
def test_it_is_right_on_average_and_nearly_always(gaps: str) -> None:
    found = np.concatenate([errors(gaps, seed) for seed in range(10)])
    assert abs(found.mean()) <= 0.01
    assert np.quantile(np.abs(found), 0.9) <= 0.05


def test_a_change_is_seen_within_two_looks() -> None:
    estimate = ArrivalRate()
    for second in range(10):
        estimate.update(second, 1000.0 * second)
    estimate.update(10.0, 10_000.0 + 2000)
    assert estimate.update(11.0, 10_000.0 + 5000) == pytest.approx(3000, rel=0.01)


def test_a_look_at_the_same_time_changes_nothing() -> None:
    estimate = ArrivalRate()
    estimate.update(0.0, 0)
    estimate.update(1.0, 10)
    assert estimate.update(1.0, 99) == 10.0


@given(
    st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 10**6)), min_size=1, max_size=30),
    st.sampled_from([0.2, 1.0]),
)
def test_a_counters_rate_is_the_smoothed_change(
    steps: list[tuple[float, int]], weight: float
) -> None:
    rate, at_s, count, expected = CounterRate(weight), 0.0, 0.0, None
    rate.update(at_s, count)
    for seconds, more in steps:
        passed_s = (at_s + seconds) - at_s
        at_s, count = at_s + seconds, count + more
        change = more / passed_s
        expected = change if expected is None else (1 - weight) * expected + weight * change
        assert rate.update(at_s, count) == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_an_estimate_that_was_corrected_does_not_start_anew() -> None:
    rate = CounterRate(weight=0.5, restarts=False)
    for at_s, count in ((0.0, 0), (1.0, 100), (2.0, 90)):
        rate.update(at_s, count)
    assert rate.value == 45.0


def test_a_slow_change_after_a_fast_one_is_exact() -> None:
    rate = CounterRate()
    rate.update(0.0, 0.0)
    rate.update(0.01, 167_773.0)
    assert rate.update(3.01, 167_774.0) == pytest.approx(1 / 3, rel=1e-12)
