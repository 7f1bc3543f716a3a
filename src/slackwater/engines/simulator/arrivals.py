"""How many events come to sources, evenly or in bursts, and when each of them came."""

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.common.durations import parse_duration_s
from slackwater.core.errors import UsageError
from slackwater.engines.simulator.flow import Floats

VALID_FORMS = "even, bursts:PEAK:LASTS:EVERY (bursts:3:5s:20s, say)"
SEEN_S = 2.0  # over which a rate is measured


@dataclass(frozen=True, slots=True)
class Bursts:
    """Calm and bursts in turn, both for exponentially distributed times; the mean rate stays.

    >>> Bursts(peak=3.0, lasts_s=5.0, every_s=20.0).calm
    0.3333333333333333
    """

    peak: float  # rate in a burst ÷ mean rate
    lasts_s: float  # on average
    every_s: float  # from the begin of a burst to that of the next, on average

    def __post_init__(self) -> None:
        if not (self.peak > 1 and 0 < self.lasts_s < self.every_s and self.calm >= 0):
            raise UsageError(
                f"bursts of {self.peak:g} times the mean rate for {self.lasts_s:g} s every "
                f"{self.every_s:g} s cannot be: the peak must exceed 1, and peak × length must not "
                "exceed the distance"
            )

    @property
    def calm(self) -> float:
        """Rate between bursts ÷ mean rate."""
        return (self.every_s - self.peak * self.lasts_s) / (self.every_s - self.lasts_s)


def parse_arrivals(text: str) -> Bursts | None:
    """Read what a short text names; nothing for even arrivals.

    >>> parse_arrivals("even"), parse_arrivals("bursts:3:500ms:4s")
    (None, Bursts(peak=3.0, lasts_s=0.5, every_s=4.0))
    """
    if text == "even":
        return None
    kind, *arguments = text.split(":")
    try:
        if kind != "bursts":
            raise ValueError(kind)
        peak, lasts, every = arguments
        known = float(peak), parse_duration_s(lasts), parse_duration_s(every)
    except (ValueError, UsageError):
        raise UsageError(f"'{text}' names no arrivals; valid forms: {VALID_FORMS}") from None
    return Bursts(*known)


@dataclass(frozen=True, slots=True)
class Feed:
    """What comes to one source."""

    rate: float  # events per second, on average
    starts_s: float = 0.0
    bursts: Bursts | None = None  # None: evenly


class SimulatedArrivals:
    """The feeds of many sources, as time goes on.

    >>> arrivals = SimulatedArrivals([Feed(100.0), Feed(10.0, starts_s=1.0)], seed=1)
    >>> arrivals.total(3.0).tolist(), arrivals.came_s(1, 5.0)
    ([300.0, 20.0], 1.5)
    """

    def __init__(self, feeds: Sequence[Feed], seed: int) -> None:
        self._feeds = feeds
        self._rng = [np.random.default_rng((seed, place)) for place in range(len(feeds))]
        self._rate = np.array([feed.rate for feed in feeds])
        self._from_s = np.array([feed.starts_s for feed in feeds])  # begin of the present stretch
        self._before = np.zeros(len(feeds))  # events that came before it
        self._until_s = np.full(len(feeds), math.inf)
        self._stretches: list[deque[tuple[float, float, float]]] = [deque() for _ in feeds]
        self._in_burst = [False] * len(feeds)
        for place, feed in enumerate(feeds):
            if feed.bursts is not None:
                self._in_burst[place] = self._rng[place].random() < 1 - _calm_share(feed.bursts)
            self._begin(place, feed.starts_s)

    def total(self, until_s: float) -> Floats:
        """Return events of each up to a time; times must not go back."""
        while len(ended := np.flatnonzero(self._until_s <= until_s)):
            for place in ended.tolist():
                self._switch(place)
        total: Floats = self._before + self._rate * np.clip(until_s - self._from_s, 0.0, None)
        return total

    def came_s(self, place: int, position: float) -> float:
        """Return when an event came; positions asked for must not go back."""
        stretches = self._stretches[place]
        while len(stretches) > 1 and stretches[1][1] <= position:
            stretches.popleft()
        from_s, before, rate = stretches[0]
        return from_s + (position - before) / rate if rate > 0 else from_s

    def _switch(self, place: int) -> None:
        from_s, until_s = float(self._from_s[place]), float(self._until_s[place])
        self._before[place] += self._rate[place] * (until_s - from_s)
        self._in_burst[place] = not self._in_burst[place]
        self._begin(place, until_s)

    def _begin(self, place: int, from_s: float) -> None:
        feed, self._from_s[place] = self._feeds[place], from_s
        if feed.bursts is not None:
            burst, in_burst = feed.bursts, self._in_burst[place]
            mean_s = burst.lasts_s if in_burst else burst.every_s - burst.lasts_s
            self._rate[place] = feed.rate * (burst.peak if in_burst else burst.calm)
            self._until_s[place] = from_s + self._rng[place].exponential(mean_s)
        before, rate = float(self._before[place]), float(self._rate[place])
        self._stretches[place].append((from_s, before, rate))


def _calm_share(bursts: Bursts) -> float:
    return 1 - bursts.lasts_s / bursts.every_s
