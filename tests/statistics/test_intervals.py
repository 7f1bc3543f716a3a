"""Intervals: known answers, and coverage where no formula gives the answer."""

import math
from statistics import NormalDist, mean, stdev

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.statistics.intervals import (
    Interval,
    binomial_interval,
    mean_interval,
    quantile_interval,
    ratio_interval,
    student_t,
    summary,
)

RUN_MEANS = [4.0, 5.0, 7.0, 6.0, 5.5]


def test_equal_runs_give_student_s_interval() -> None:
    found = mean_interval([[value] for value in RUN_MEANS])
    reach = 2.776 * stdev(RUN_MEANS) / math.sqrt(5)
    assert found.estimate == pytest.approx(mean(RUN_MEANS))
    assert found.high - found.estimate == pytest.approx(reach, rel=0.06)
    assert found.estimate - found.low == pytest.approx(reach, rel=0.06)


def test_more_windows_in_a_run_do_not_make_the_runs_more_alike() -> None:
    once = mean_interval([[value] for value in RUN_MEANS])
    often = mean_interval([[value] * 500 for value in RUN_MEANS])
    assert often == pytest.approx(once)


def test_runs_weigh_by_their_windows() -> None:
    assert mean_interval([[1.0] * 8, [2.0], [3.0]]).estimate == pytest.approx(1.3)


def test_a_slow_spell_widens_the_interval_of_a_single_run() -> None:
    """The same values in another order: spells of 20 windows tell less than 400 separate ones."""
    chance = np.random.default_rng(3)
    spells = np.repeat(chance.exponential(1.0, 20), 20)
    mixed = chance.permutation(spells)
    width = {
        name: (found := mean_interval(values)).high - found.low
        for name, values in (("spells", spells), ("mixed", mixed))
    }
    assert width["spells"] > 2 * width["mixed"]


def test_independent_windows_of_one_run_give_the_usual_interval() -> None:
    values = np.random.default_rng(4).normal(10.0, 2.0, 1000)
    found = mean_interval(values)
    assert found.estimate == pytest.approx(values.mean())
    assert found.high - found.low == pytest.approx(2 * 1.96 * 2.0 / math.sqrt(1000), rel=0.2)


@pytest.mark.parametrize("runs", [3, 5])
def test_intervals_cover_the_truth(runs: int) -> None:
    chance = np.random.default_rng(5)
    trials, inside = 150, 0
    for _ in range(trials):
        values = [chance.exponential(1.0, 40) + chance.normal(0.0, 0.2) for _ in range(runs)]
        found = mean_interval(values)
        inside += found.low <= 1.0 <= found.high
    assert binomial_interval(inside, trials).high >= 0.95


def test_quantile_of_runs_against_the_slow_way() -> None:
    chance = np.random.default_rng(6)
    runs = [chance.exponential(scale, 60) for scale in (1.0, 1.3, 0.8, 1.1)]
    found = quantile_interval(runs, 0.9)
    slow = [
        np.quantile(np.concatenate([runs[i] for i in picks]), 0.9, method="inverted_cdf")
        for picks in chance.integers(4, size=(4000, 4))
    ]
    reach = float(np.std(slow)) * math.sqrt(4 / 3) * student_t(3)
    assert found.estimate == pytest.approx(np.quantile(np.concatenate(runs), 0.9))
    assert found.high - found.estimate == pytest.approx(reach, rel=0.08)


def test_quantile_of_a_single_run_has_the_order_statistics_interval() -> None:
    values = np.random.default_rng(7).permutation(np.arange(1000.0))
    found = quantile_interval(values, 0.5)
    # Ranks of the median's interval: n/2 ± 1.96 √n / 2.
    assert found.estimate == pytest.approx(499.5)
    assert found.high - found.low == pytest.approx(1.96 * math.sqrt(1000), rel=0.25)


def test_quantiles_of_many_values_stay_close_and_small() -> None:
    chance = np.random.default_rng(8)
    runs = [chance.uniform(0.0, 1.0, 20_000) for _ in range(3)]
    found = quantile_interval(runs, 0.99)
    assert found.low <= 0.99 <= found.high
    assert found.high - found.low < 0.02


def test_ratio_is_paired() -> None:
    """Repeats differ by a factor of four, the two sides by ten per cent."""
    theirs = [[1.0, 1.2], [2.0, 2.1], [4.0, 4.4]]
    mine = [[0.9 * value for value in run] for run in theirs]
    found = ratio_interval(mine, theirs)
    assert found == pytest.approx((0.9, 0.9, 0.9))
    assert ratio_interval(mine, theirs, level=0.5) == pytest.approx((0.9, 0.9, 0.9))


def test_ratio_and_its_inverse_agree() -> None:
    chance = np.random.default_rng(9)
    mine = [chance.exponential(1.0, 50) for _ in range(4)]
    theirs = [chance.exponential(2.0, 50) for _ in range(4)]
    there, back = ratio_interval(mine, theirs), ratio_interval(theirs, mine)
    assert there == pytest.approx((1 / back.estimate, 1 / back.high, 1 / back.low))


def test_ratio_of_single_runs_comes_from_stretches() -> None:
    chance = np.random.default_rng(10)
    found = ratio_interval([chance.normal(5, 1, 400)], [chance.normal(10, 1, 400)])
    assert found.low < 0.5 < found.high
    assert found.high - found.low < 0.05


def test_ratio_leaves_out_half_empty_pairs() -> None:
    found = ratio_interval([[1.0], [], [2.0]], [[2.0], [9.0], [4.0]])
    assert found.estimate == 0.5
    assert not found.known


def test_ratio_needs_equal_numbers_of_runs() -> None:
    with pytest.raises(ValueError, match="2 runs cannot be paired with 1"):
        ratio_interval([[1.0], [2.0]], [[1.0]])


@pytest.mark.parametrize(
    "values", [[], [[]], [math.nan], [[1.0], [2.0]], [1.0, 2.0]], ids=["", "[]", "nan", "2", "1"]
)
def test_too_little_is_said_to_be_unknown(values: list[float]) -> None:
    assert not mean_interval(values).known
    assert not quantile_interval(values, 0.9).known


def test_a_ratio_to_nothing_is_unknown() -> None:
    assert math.isnan(ratio_interval([[1.0]], [[0.0]]).estimate)
    assert math.isnan(ratio_interval([], []).estimate)


def test_values_that_are_no_numbers_are_dropped() -> None:
    assert mean_interval([[1.0, math.nan], [2.0], [math.inf, 3.0]]).estimate == 2.0


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [
        (8, 10, 0.4902, 0.9433),
        (0, 10, 0.0, 0.2775),
        (10, 10, 0.7225, 1.0),
        (95, 100, 0.8882, 0.9785),
    ],
)
def test_wilson(successes: int, trials: int, low: float, high: float) -> None:
    expected = Interval(successes / trials, low, high)
    assert binomial_interval(successes, trials) == pytest.approx(expected, abs=1e-4)


@given(st.integers(1, 10**6).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_holds_its_share(case: tuple[int, int]) -> None:
    found = binomial_interval(*case)
    assert 0 <= found.low <= found.estimate <= found.high <= 1


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=12), max_size=5))
def test_every_interval_holds_its_estimate(values: list[list[float]]) -> None:
    for found in (mean_interval(values), quantile_interval(values, 0.99)):
        assert not found.known or found.low <= found.estimate <= found.high


def test_the_same_values_give_the_same_interval() -> None:
    values = np.random.default_rng(11).normal(size=100)
    assert mean_interval(values) == mean_interval(values)


@pytest.mark.parametrize(("freedom", "expected"), [(1, 12.706), (11, 2.201), (30, 2.042)])
def test_student_t(freedom: int, expected: float) -> None:
    assert student_t(freedom) == pytest.approx(expected, abs=0.002)


def test_student_t_ends_in_the_normal_distribution() -> None:
    assert student_t(10**9) == pytest.approx(NormalDist().inv_cdf(0.975), abs=1e-6)


def test_summary_of_arrays_and_of_nothing() -> None:
    assert summary(np.array([1.0, 3.0]).tolist())["max"] == 3.0
    assert summary([])["mean"] is None
