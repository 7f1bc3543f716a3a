"""How many rows are enough, against draws."""

from math import comb

import numpy as np
import pytest

from slackwater.sampling import Promise
from slackwater.sampling.estimates import Weights, count
from slackwater.sampling.needs import few_missing, room_for, room_for_count

PROMISE = Promise(error=0.05, confidence=0.95)


def late_counts(rows: int, room: float) -> tuple[float, float]:
    """Of counts that use up a room, with all late rows in one fifth of them: the part that promise
    anything, and the part of those that keep it."""
    late = max(rows // 5, 1)
    share = 1 / (1 + room * rows / late)
    draws = np.random.default_rng(rows).binomial(late, share, 20_000) * 1.0
    weights = Weights(
        rows - late + draws,
        rows - late + draws / share,
        draws * (1 / share) * (1 / share - 1),
        np.zeros_like(draws),
    )
    found = count(weights, PROMISE)
    kept = np.abs(found.value - rows) <= PROMISE.error * rows + 1e-9
    return found.bounded.mean(), kept[found.bounded].mean()


@pytest.mark.parametrize("share", [0.5, 0.75, 0.85, 0.9, 0.95, 0.99])
@pytest.mark.parametrize("rows", [2, 5, 12, 20, 38, 56, 90])
def test_limits_of_missing_rows_hold_as_often_as_they_say(rows: int, share: float) -> None:
    """Exactly, by adding up all that can happen."""
    kept = np.arange(1, rows + 1)
    low, high = few_missing(kept * 1.0, np.full(len(kept), share), PROMISE)
    covered = (low <= rows - kept) & (rows - kept <= high)
    chance = [comb(rows, n) * share**n * (1 - share) ** (rows - n) for n in kept.tolist()]
    none_kept = (1 - share) ** rows  # no row in the result, and so no interval
    assert float(covered @ np.array(chance)) >= PROMISE.confidence - none_kept - 1e-9


@pytest.mark.parametrize("rows", [350, 1199, 5000])
def test_large_counts_keep_the_promise_with_the_room_they_say(rows: int) -> None:
    share = 1 / (1 + room_for_count(np.array([float(rows)]), PROMISE)[0])
    kept = np.random.default_rng(rows).binomial(rows, share, 200_000)
    within = np.abs(kept / share - rows) <= PROMISE.error * rows + 1e-9
    assert within.mean() >= PROMISE.confidence - 0.01


@pytest.mark.parametrize("rows", [1, 5, 10, 19, 20, 29, 30, 40, 100, 200])
def test_small_counts_keep_the_promise_with_the_room_they_say(rows: int) -> None:
    promised, kept = late_counts(rows, room_for_count(np.array([float(rows)]), PROMISE)[0])
    assert promised >= 0.85
    assert kept >= PROMISE.confidence - 0.005


@pytest.mark.parametrize("rows", [20, 40, 100])
def test_counts_do_not_ask_for_much_more_than_needed(rows: int) -> None:
    promised, kept = late_counts(rows, 3 * room_for_count(np.array([float(rows)]), PROMISE)[0])
    assert promised * kept < 0.5


def test_sample_size_is_that_of_the_formula() -> None:
    """n = z² s² / (err² mean² + z² s² / N)."""
    promise, rows, mean, deviation = Promise(), 3000.0, 4.0, 3.0
    room = room_for(np.array([(deviation / mean) ** 2]), np.array([rows]), promise)[0]
    variance = promise.z**2 * deviation**2
    size = variance / (promise.error**2 * mean**2 + variance / rows)
    assert rows / (1 + room) == pytest.approx(size)
