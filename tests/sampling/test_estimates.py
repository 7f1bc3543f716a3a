"""Intervals, against many samples of known populations."""

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from slackwater.sampling import Promise, estimates
from slackwater.sampling.estimates import Estimate, Moments, Weights

Floats = NDArray[np.float64]

DRAWS = 3000
PROMISE = Promise(error=0.05, confidence=0.95)
POPULATIONS: dict[str, Callable[[np.random.Generator, int], Floats]] = {
    "uniform": lambda rng, rows: rng.uniform(1, 3, rows),
    "exponential": lambda rng, rows: rng.exponential(2.0, rows),
    "lognormal": lambda rng, rows: rng.lognormal(1.0, 0.7, rows),
}


def draws(values: Floats, shares: Floats, seed: int) -> tuple[Floats, Floats]:
    """``DRAWS`` samples: which rows are kept, and their weights."""
    kept = np.random.default_rng(seed).random((DRAWS, len(values))) < shares
    return kept, 1 / shares


def weights_of(kept: Floats, w: Floats) -> Weights:
    return Weights(kept.sum(1) * 1.0, kept @ w, kept @ (w * (w - 1)), np.zeros(len(kept)))


def moments_of(kept: Floats, w: Floats, v: Floats) -> Moments:
    more = w * (w - 1)
    largest = np.where(kept, np.abs(v), 0.0).max(1)
    sums = (kept @ term for term in (w * v, w * v * v, more * v, more * v * v))
    return Moments(*sums, np.zeros(len(kept)), largest)


def coverage(found: Estimate, truth: float) -> float:
    return float(((found.low - 1e-9 <= truth) & (truth <= found.high + 1e-9)).mean())


@pytest.mark.parametrize("rows", [5, 12, 40, 200, 2000])
@pytest.mark.parametrize("share", [0.3, 0.7, 0.95, 0.995])
def test_counts_are_covered(rows: int, share: float) -> None:
    kept, w = draws(np.ones(rows), np.full(rows, share), seed=rows)
    present = kept.any(1)  # a group without a row is not in the result at all
    found = estimates.count(weights_of(kept[present], w), PROMISE)
    assert coverage(found, rows) >= 0.935


@pytest.mark.parametrize("rows", [12, 30, 55, 120])
@pytest.mark.parametrize("share", [0.85, 0.95, 0.98, 0.995])
def test_bounded_counts_are_within_the_error(rows: int, share: float) -> None:
    """Of the truth, wherever in its interval that is; and hardly off on average."""
    kept, w = draws(np.ones(rows), np.full(rows, share), seed=rows)
    found = estimates.count(weights_of(kept, w), PROMISE)
    for end in (found.low, found.high):
        assert (np.abs(found.value - end) <= 0.05 * end + 1e-6)[found.bounded].all()
    within = np.abs(found.value - rows) <= 0.05 * rows + 1e-9
    if found.bounded.mean() > 0.5:
        assert within[found.bounded].mean() >= 0.945
    assert abs(found.value.mean() / rows - 1) < 0.03


@pytest.mark.parametrize("population", POPULATIONS)
@pytest.mark.parametrize(("rows", "share"), [(100, 0.5), (400, 0.3), (2000, 0.1), (300, 0.97)])
def test_sums_and_means_are_covered(population: str, rows: int, share: float) -> None:
    values = POPULATIONS[population](np.random.default_rng(rows), rows)
    shares = np.where(np.arange(rows) < rows // 5, share * 0.7, share)  # two sub-streams
    kept, w = draws(values, shares, seed=7)
    weights, moments = weights_of(kept, w), moments_of(kept, w, values)
    total = estimates.total(weights, moments, PROMISE)
    mean = estimates.mean(weights, moments, PROMISE)
    assert total.value.mean() == pytest.approx(values.sum(), rel=0.01)
    assert coverage(total, values.sum()) >= 0.92
    assert coverage(mean, values.mean()) >= 0.925


def test_ratios_are_covered() -> None:
    rng = np.random.default_rng(3)
    below = rng.uniform(5, 30, 500)
    above = below * rng.uniform(0.1, 0.3, 500)
    kept, w = draws(below, np.full(500, 0.4), seed=5)
    found = estimates.ratio(
        weights_of(kept, w),
        moments_of(kept, w, above),
        moments_of(kept, w, below),
        moments_of(kept, w, above * below),
        PROMISE,
    )
    assert coverage(found, above.sum() / below.sum()) >= 0.93


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_ranks_of_quantiles_are_covered(level: float) -> None:
    values = np.random.default_rng(1).lognormal(1.0, 1.0, 800)
    kept, w = draws(values, np.full(800, 0.4), seed=5)
    lists = [values[row] for row in kept[:800]]
    found = estimates.quantile(level, lists, [w[row] for row in kept[:800]], PROMISE)
    assert coverage(found, float(np.quantile(values, level, method="inverted_cdf"))) >= 0.93


def test_all_rows_give_an_exact_value() -> None:
    values = np.array([3.0, 4.0, 8.0])
    kept, w = np.ones((1, 3), dtype=bool), np.ones(3)
    weights, moments = weights_of(kept, w), moments_of(kept, w, values)
    for found, truth in (
        (estimates.count(weights, PROMISE), 3.0),
        (estimates.total(weights, moments, PROMISE), 15.0),
        (estimates.mean(weights, moments, PROMISE), 5.0),
    ):
        assert (found.value[0], found.low[0], found.high[0]) == (truth, truth, truth)
        assert found.bounded[0]


def test_a_doubtful_weight_widens_the_interval() -> None:
    sure = Weights(*(np.array([x]) for x in (500.0, 1000.0, 1000.0, 0.0)))
    doubtful = Weights(*(np.array([x]) for x in (500.0, 1000.0, 1000.0, 100.0)))
    narrow, wide = (estimates.count(w, PROMISE) for w in (sure, doubtful))
    assert wide.high[0] > narrow.high[0]
    assert wide.low[0] < narrow.low[0]


def test_heavy_tails_are_marked_and_not_promised() -> None:
    """Of samples of a sum that a few rows rule, those off by more than 5 % are marked."""
    rng = np.random.default_rng(2)
    values = rng.pareto(1.1, 2000) + 1
    kept, w = draws(values, np.full(2000, 0.3), seed=5)
    found = estimates.total(weights_of(kept, w), moments_of(kept, w, values), PROMISE)
    wrong = np.abs(found.value / values.sum() - 1) > PROMISE.error
    assert wrong.mean() > 0.3
    assert (wrong & found.bounded).mean() <= 0.05


@pytest.mark.parametrize("kept_rows", [1, 2, 5, 12])
def test_a_handful_of_equal_values_promises_nothing(kept_rows: int) -> None:
    """The other rows of the group may be different, and the sample cannot know."""
    values = np.ones(50)
    kept = np.arange(50)[None, :] < kept_rows
    w = np.full(50, 50 / kept_rows)
    weights, moments = weights_of(kept, w), moments_of(kept, w, values)
    found = estimates.mean(weights, moments, PROMISE)
    assert found.value[0] == 1.0
    assert not found.bounded[0]
    assert not estimates.ratio(weights, moments, moments, moments, PROMISE).bounded[0]


def test_no_rows_with_a_value_give_no_value() -> None:
    nothing = [np.zeros(1)] * 6
    found = estimates.mean(Weights(*nothing[:4]), Moments(*nothing), PROMISE)
    assert np.isnan(found.value[0])
    assert not found.bounded[0]
    empty = estimates.quantile(0.5, [np.zeros(0)], [np.zeros(0)], PROMISE)
    assert np.isnan(empty.value[0])
    assert not empty.bounded[0]


def test_few_rows_with_large_weights_leave_a_wide_interval() -> None:
    lone = Weights(*(np.array([x]) for x in (1.0, 20.0, 20.0 * 19.0, 0.0)))
    assert estimates.count(lone, PROMISE).high[0] > 40


def test_missing_rows_of_one_sub_stream_are_covered() -> None:
    """Ten of a thousand rows stand for two each, the others for themselves."""
    shares = np.where(np.arange(1000) < 20, 0.5, 1.0)
    kept, w = draws(np.ones(1000), shares, seed=4)
    assert coverage(estimates.count(weights_of(kept, w), PROMISE), 1000) >= 0.94


def test_the_room_is_what_an_interval_at_its_limit_uses() -> None:
    """So that a doubt, which no formula for the room knows, makes it smaller."""
    sure, doubtful = (
        Weights(*(np.array([x]) for x in (800.0, 1000.0, 250.0, doubt))) for doubt in (0.0, 10.0)
    )
    rooms = [estimates.count(each, PROMISE).room[0] for each in (sure, doubtful)]
    assert rooms[1] < 0.7 * rooms[0]
