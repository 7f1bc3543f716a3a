"""How many rows are enough, against draws."""

import numpy as np
import pytest

from slackwater.sampling import Promise
from slackwater.sampling.needs import room_for, room_for_count


@pytest.mark.parametrize("rows", [1, 5, 10, 19, 20, 40, 100, 350, 1199, 5000])
def test_counts_keep_the_promise_with_the_room_they_say(rows: int) -> None:
    promise = Promise(error=0.05, confidence=0.95)
    share = 1 / (1 + room_for_count(np.array([float(rows)]), promise)[0])
    kept = np.random.default_rng(rows).binomial(rows, share, 200_000)
    within = np.abs(kept / share - rows) <= promise.error * rows + 1e-9
    assert within.mean() >= promise.confidence - 0.01


@pytest.mark.parametrize("rows", [100, 1000])
def test_counts_do_not_ask_for_much_more_than_needed(rows: int) -> None:
    promise = Promise()
    room = room_for_count(np.array([float(rows)]), promise)[0]
    share = 1 / (1 + 2 * room)
    kept = np.random.default_rng(rows).binomial(rows, share, 200_000)
    assert (np.abs(kept / share - rows) <= 0.05 * rows).mean() < promise.confidence


def test_sample_size_is_that_of_the_formula() -> None:
    """n = z² s² / (err² mean² + z² s² / N)."""
    promise, rows, mean, deviation = Promise(), 3000.0, 4.0, 3.0
    room = room_for(np.array([(deviation / mean) ** 2]), np.array([rows]), promise)[0]
    variance = promise.z**2 * deviation**2
    size = variance / (promise.error**2 * mean**2 + variance / rows)
    assert rows / (1 + room) == pytest.approx(size)
