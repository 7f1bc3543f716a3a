"""The empirical delay against slow, obvious versions."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.progress import EmpiricalDelay
from slackwater.progress.recent import RecentSample

values = st.floats(-0.2, 2.0).map(lambda x: round(x, 4))
samples = st.lists(values, min_size=1, max_size=60)


def draws(delay: EmpiricalDelay, elapsed: float) -> float:
    """``E[w | w > elapsed]`` by listing what may come: the sample, and the tail beyond it."""
    top = delay.sample[-1]
    listed = [x for x in delay.sample if x > elapsed]
    return float(np.mean([*listed, max(top, elapsed) + delay.tail_s]))


@given(samples, st.floats(-0.5, 3.0))
def test_remaining_is_the_mean_of_what_is_left(sample: list[float], elapsed: float) -> None:
    delay = EmpiricalDelay.of(sample)
    left = delay.remaining(elapsed)
    assert left >= 0
    assert left == pytest.approx(draws(delay, elapsed) - elapsed, abs=1e-9)


@given(samples)
def test_chance_never_falls_and_ends_at_one(sample: list[float]) -> None:
    delay = EmpiricalDelay.of(sample)
    chances = [delay.chance(x) for x in np.linspace(-0.5, 3.0, 200).tolist()]
    assert all(0 <= a <= b <= 1 for a, b in pairwise(chances))
    assert delay.chance(1e6) == 1.0


@given(samples, st.floats(0.0, 20.0))
def test_best_wait_is_the_cheapest(sample: list[float], waste: float) -> None:
    delay = EmpiricalDelay.of(sample)

    def cost(wait: float) -> float:
        return wait + (1 - delay.chance(wait)) * waste

    best = delay.best_wait(waste)
    assert best >= 0
    tried = [*np.linspace(0.0, 6.0, 600).tolist(), *(x for x in sample if x >= 0)]
    assert cost(best) <= min(map(cost, tried)) + 1e-9


@given(samples, st.floats(0.05, 0.99))
def test_no_shorter_interval_would_do(sample: list[float], confidence: float) -> None:
    delay = EmpiricalDelay.of(sample)
    low, high = delay.interval(confidence)
    size = len(sample)
    ends = [min(0.0, *sample), *sorted(sample)]
    needed = int(np.ceil(confidence * (size + 1) - 1e-12))
    enough = [(b - a) for i, a in enumerate(ends) for j, b in enumerate(ends) if j - i >= needed]
    if enough:
        assert high - low == pytest.approx(min(enough))
    else:
        assert low <= min(sample)
        assert high >= max(sample)


def test_the_interval_holds_its_share_of_new_values() -> None:
    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(2000):
        drawn = rng.exponential(0.02, 20)
        # Too few values for 97 %: the tail has to do it.
        low, high = EmpiricalDelay.of(drawn[:-1]).interval(0.97)
        hits += low <= drawn[-1] <= high
    assert 0.94 < hits / 2000 <= 1.0


@given(st.lists(values, min_size=1, max_size=80), st.integers(2, 12))
def test_recent_values_in_both_orders(stream: list[float], capacity: int) -> None:
    sample = RecentSample(capacity)
    for value in stream:
        sample.add(value)
    kept = stream[-capacity:]
    assert sample.ascending.tolist() == sorted(kept)
    assert sample.newest(3).tolist() == kept[-3:]
    sample.keep_newest(2)
    assert sample.ascending.tolist() == sorted(kept[-2:])
    sample.add(9.0)
    assert sample.newest(2).tolist() == [*kept[-1:], 9.0]
    assert len(sample) == min(capacity, len(kept[-2:]) + 1)
