"""When the first event past a window's end arrives, drawn from its distribution."""

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from slackwater.traffic import parse_delays

SAMPLES = 200_000  # of delays, to know their distribution by
POINTS = 2000  # of the distribution of the first arrival


class FirstArrivals:
    """The time between the base and the first arrival of an event past it.

    With events every 1 / rate seconds, of which each is late by an independent delay, none has
    arrived by x with the probability Π (1 − F(x − k / rate)). For many events that is
    exp(rate ∫ log(1 − F)).

    >>> rare, often = FirstArrivals(100, "uniform:0:300ms"), FirstArrivals(10000, "uniform:0:300ms")
    >>> rng = np.random.default_rng(1)
    >>> bool(rare.draw(rng, 1000).mean() > 3 * often.draw(rng, 1000).mean())
    True
    """

    def __init__(self, rate: float, delays: str) -> None:
        known = parse_delays(delays)
        drawn = np.sort(known.draw_us(np.random.default_rng(0), SAMPLES) / 1e6)
        longest_s = known.max_s + 1.0 / rate
        self._times: NDArray[np.float64] = np.linspace(0.0, longest_s, POINTS)
        arrived = np.searchsorted(drawn, self._times, side="right") / (SAMPLES + 1)
        step_s = self._times[1] - self._times[0]
        left = np.exp(np.cumsum(rate * step_s * np.log1p(-arrived)))
        self._chance = 1.0 - left

    def draw(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw so many of them, in seconds."""
        return np.interp(rng.random(size), self._chance, self._times)


@lru_cache(maxsize=64)
def first_arrivals(rate: float, delays: str) -> FirstArrivals:
    """Return one for all queries that are alike in this."""
    return FirstArrivals(rate, delays)
