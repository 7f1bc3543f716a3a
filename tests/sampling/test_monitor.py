"""What is remembered of delays and windows."""

import numpy as np

from slackwater.sampling.delays import LEVELS, RecentDelays
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import ANY_NUMBER


def cycle(delays: RecentDelays, scale_s: float, batches: int = 4, seed: int = 1) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(batches):
        drawn = rng.exponential(scale_s, 1000)
        delays.add(np.quantile(drawn, LEVELS), 1000.0, float(drawn.max()))
    delays.close_cycle()


def test_delays_that_no_longer_fit_are_forgotten() -> None:
    delays = RecentDelays()
    for seed in range(20):
        cycle(delays, 0.24, seed=seed)
    assert delays.rows == 20 * 4000
    cycle(delays, 0.6)
    assert delays.rows == 4000


def test_delays_that_fit_are_kept_however_many_batches_a_cycle_has() -> None:
    """What is remembered does not grow with the number of batches."""
    delays = RecentDelays()
    for batches in (1, 300, 2):
        cycle(delays, 0.24, batches)
    assert delays.rows == 303_000
    assert all(len(points) == len(LEVELS) for points, _ in delays._cycles)
    share = delays.arrived_shares(wait_s=0.0, substream_s=0.6, number=1)[0]
    exact = 1 - 0.24 / 0.6 * (1 - np.exp(-0.6 / 0.24))
    assert abs(share - exact) < 0.02


def test_a_window_with_an_unusual_number_of_rows_shows() -> None:
    monitor = Monitor()
    for rows in (1000, 1010, 990, 1005):
        monitor.close_window(1.0, rows)
    assert monitor.usual_rows == ANY_NUMBER, "four windows tell little"
    monitor.close_window(1.0, 995)
    low, high = monitor.usual_rows
    assert 800 < low < 990
    assert 1010 < high < 1200


def test_what_has_become_usual_is_learnt() -> None:
    monitor = Monitor()
    for rows in [1000] * 10 + [3000] * 10:
        monitor.close_window(1.0, rows)
    low, high = monitor.usual_rows
    assert low < 3000 < high
