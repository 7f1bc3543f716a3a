"""Sources with a clock of their own."""

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.progress.ticks import Ticks


def ticking(period_s: float, phase_s: float, lag_s: float, times_s: list[float]) -> Ticks:
    ticks = Ticks()
    for at_s in times_s:
        steps = math.floor((at_s - lag_s - phase_s) / period_s)
        ticks.observe(at_s, round(phase_s + steps * period_s, 3))
    return ticks


def random_times(seed: int, count: int = 40) -> list[float]:
    draw, at_s, found = random.Random(seed), 1000.0, []
    for _ in range(count):
        at_s += draw.uniform(0.2, 2.5)
        found.append(at_s)
    return found


@settings(max_examples=50, deadline=None)
@given(
    st.sampled_from([0.5, 1.0, 2.0, 5.0]),
    st.floats(0, 1),
    st.floats(0, 0.3),
    st.integers(0, 1000),
)
def test_period_phase_and_lag_are_learnt(
    period_s: float, phase_s: float, lag_s: float, seed: int
) -> None:
    times_s = random_times(seed, count=80)
    ticks = ticking(period_s, phase_s, lag_s, times_s)
    assert ticks.period_s == pytest.approx(period_s, abs=0.01)
    event_s = times_s[-1] + 7.3
    true_s = phase_s + math.ceil((event_s - phase_s) / period_s) * period_s + lag_s
    early_s = ticks.next_s(event_s) - true_s
    assert min(abs(early_s), abs(early_s + period_s), abs(early_s - period_s)) < 0.25 * period_s


def test_a_stream_does_not_tick() -> None:
    ticks = Ticks()
    draw = random.Random(5)
    for at_s in random_times(3):
        ticks.observe(at_s, at_s - draw.uniform(0.0, 0.1))
    assert ticks.period_s is None


def test_a_stream_that_is_read_at_one_phase_does_not_tick() -> None:
    ticks = Ticks()
    for number in range(40):
        ticks.observe(1000.0 + 10 * number, 1000.0 + 10 * number - 0.02)
    assert ticks.period_s is None
