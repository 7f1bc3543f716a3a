"""Slack: the closed forms, the published sum, and the vector of all queries."""

import math
from time import thread_time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from slackwater.progress import (
    EmpiricalDelay,
    NormalDelay,
    SlackTable,
    SweepDelay,
    expected_slack,
    stepwise_slack,
)
from slackwater.progress.slack import KNOTS

samples = st.lists(st.floats(0.0, 0.5), min_size=1, max_size=400)


@settings(max_examples=60)
@given(
    st.floats(0.0, 0.5),
    st.floats(0.01, 0.2),
    st.floats(-6.0, 4.0),
    st.floats(0.0, 2.0),
    st.floats(0.01, 0.12),
)
def test_the_sum_lies_within_a_step_above_the_closed_form(
    mean: float, std: float, z: float, cost: float, step: float
) -> None:
    delay = NormalDelay(mean, std)
    now = 100.0 + mean + z * std
    exact = expected_slack(now, 100.0, delay, cost)
    summed = stepwise_slack(now, 100.0, delay, cost, step)
    assert exact - 1e-6 <= summed <= exact + step + 1e-6


def test_the_published_sum_loses_the_upper_tail() -> None:
    delay = NormalDelay(0.15, 0.02)
    whole = stepwise_slack(100.0, 100.0, delay, 0.0, 0.001)
    published = stepwise_slack(100.0, 100.0, delay, 0.0, 0.001, confidence=0.95)
    assert published < 0.97 * whole
    late = 100.0 + delay.interval(0.95)[1] + 0.01
    assert stepwise_slack(late, 100.0, delay, 0.5, 0.001, confidence=0.95) == 0.0
    assert expected_slack(late, 100.0, delay, 0.5) < -0.45


def test_nothing_known_means_at_the_base() -> None:
    assert expected_slack(10.0, 12.0, None, 0.5) == 1.5
    assert expected_slack(13.0, 12.0, None, 0.5) == -0.5


@given(samples, st.floats(-1.0, 2.0))
def test_knots_are_close_to_the_suffix_means(sample: list[float], elapsed: float) -> None:
    delay = EmpiricalDelay.of(sample)
    table = SlackTable()
    table.put(0, 100.0, delay, 0.0)
    found = float(table.slacks(100.0 + elapsed)[0])
    elapsed = 100.0 + elapsed - 100.0
    # What is expected never falls with time, so it lies between its values at two knots.
    places, expected = delay.knots(KNOTS)
    after = int(np.searchsorted(places, elapsed, side="right"))
    low = expected[after - 1] if after else delay.mean_s
    high = expected[after] if after < KNOTS else max(elapsed + delay.tail_s, low)
    exact = delay.remaining(elapsed)
    assert found >= -1e-9
    assert abs(found - exact) <= abs(high - low) + 1e-9
    if not 0 < after < KNOTS:
        assert found == pytest.approx(exact, abs=1e-9)


def test_knots_of_a_smooth_sample_are_very_close() -> None:
    rng = np.random.default_rng(5)
    delay = EmpiricalDelay.of(rng.rayleigh(0.0173, 400))
    table = SlackTable()
    table.put(0, 0.0, delay, 0.0)
    for elapsed in np.linspace(0.0, delay.sample[-2], 200).tolist():
        assert table.slacks(elapsed)[0] == pytest.approx(delay.remaining(elapsed), abs=0.002)


class Halves(SweepDelay):
    """A user's distribution: uniform from 0 to 1."""

    mean_s = 0.5

    def interval(self, confidence: float) -> tuple[float, float]:
        return (1 - confidence) / 2, (1 + confidence) / 2

    def chance(self, elapsed_s: float) -> float:
        return min(1.0, max(0.0, elapsed_s))

    def remaining(self, elapsed_s: float) -> float:
        return max(0.0, (1 - max(0.0, elapsed_s)) / 2 - min(0.0, elapsed_s))

    def best_wait(self, waste_s: float) -> float:
        return 1.0 if waste_s > 1 else 0.0


def test_any_distribution_can_be_put() -> None:
    table = SlackTable()
    table.put(0, 0.0, Halves(), 0.0)
    for elapsed in (-1.0, 0.0, 0.3, 0.9):
        assert table.slacks(elapsed)[0] == pytest.approx(Halves().remaining(elapsed), abs=0.01)


def test_rows_of_every_kind() -> None:
    table = SlackTable(2)
    assert table.slacks(10.0).tolist() == [math.inf, math.inf]
    assert table.least(10.0) is None
    table.put(4, 12.0, NormalDelay(0.5, 0.0), 1.0)
    table.put(1, 12.0, None, 1.0)
    table.put_arrived(0, 9.5, 1.0)
    assert table.slacks(10.0).tolist() == [-1.5, 1.0, math.inf, math.inf, 1.5]
    assert table.least(10.0) == 0
    table.clear(0)
    assert table.least(10.0) == 1  # though its slack is above zero
    table.put(1, 20.0, EmpiricalDelay.of([0.1, 0.1]), 0.0)
    assert table.slacks(10.0)[1] == pytest.approx(10.1)
    assert len(table) == 5
    assert SlackTable().least(0.0) is None


def rows(count: int) -> list[tuple[float, SweepDelay, float]]:
    rng = np.random.default_rng(2)
    samples = [EmpiricalDelay.of(rng.rayleigh(0.02, 400)) for _ in range(50)]
    return [
        (
            float(rng.uniform(99, 101)),
            samples[i % 50] if i % 2 else NormalDelay(0.15, 0.01 + 0.0001 * (i % 100)),
            float(rng.uniform(0, 1)),
        )
        for i in range(count)
    ]


def test_one_vector_is_what_each_query_alone_would_get_and_much_faster() -> None:
    count, compared = 10_000, 500
    table = SlackTable(count)
    many = rows(count)
    for row, (base, delay, cost) in enumerate(many):
        table.put(row, base, delay, cost)
    vector_s = math.inf
    for _ in range(5):  # the best of a few, in CPU time: a busy machine is no failure
        start = thread_time()
        slacks = table.slacks(100.0)
        vector_s = min(vector_s, thread_time() - start)
    scalar_s = math.inf
    for _ in range(3):
        start = thread_time()
        alone = [expected_slack(100.0, *row) for row in many[:compared]]
        scalar_s = min(scalar_s, thread_time() - start)
    assert slacks[:compared] == pytest.approx(np.array(alone), abs=0.01)
    assert scalar_s * count / compared > 20 * vector_s
