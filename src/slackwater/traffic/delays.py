"""Network delays: the time between an event and its arrival.

Every distribution has a largest delay, so that a replay knows how far back it must look.
Distributions without an end are cut where at most ``TAIL`` of the draws lie beyond.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from slackwater.common.durations import parse_duration_s
from slackwater.core.errors import UsageError

TAIL = 1e-9  # share of draws at most that the cap changes

VALID_FORMS = (
    "constant:150ms, uniform:0:300ms, zipf:0.99:300ms, exponential:240ms, gamma:60:4ms, "
    "exponential:240ms|60s|uniform:0:300ms"
)


class Delays(ABC):
    """A distribution of delays.

    A member gives ``max_s``, ``mean_s`` and ``_draw_s``; the base draws whole microseconds and
    keeps them between zero and the cap.
    """

    @property
    @abstractmethod
    def max_s(self) -> float:
        """The largest delay that is ever drawn."""

    @property
    @abstractmethod
    def mean_s(self) -> float:
        """The mean before the cap."""

    @abstractmethod
    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        """Draw ``size`` delays in seconds, not yet capped."""

    @property
    def max_us(self) -> int:
        """The largest delay in whole microseconds."""
        return math.ceil(round(self.max_s * 1e6, 3))

    def draw_us(self, rng: np.random.Generator, size: int) -> NDArray[np.int64]:
        """Draw ``size`` delays in whole microseconds, none above ``max_us``."""
        delays = np.rint(self._draw_s(rng, size) * 1e6)
        return np.clip(delays, 0, self.max_us).astype(np.int64)

    def draw_at_us(
        self, rng: np.random.Generator, since_start_us: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Draw delays of events that happen at given times."""
        return self.draw_us(rng, len(since_start_us))


@dataclass(frozen=True)
class ConstantDelays(Delays):
    """Every event is equally late.

    >>> ConstantDelays(0.15).draw_us(np.random.default_rng(0), 3).tolist()
    [150000, 150000, 150000]
    """

    delay_s: float

    @property
    def max_s(self) -> float:
        return self.delay_s

    @property
    def mean_s(self) -> float:
        return self.delay_s

    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        return np.full(size, self.delay_s)


@dataclass(frozen=True)
class UniformDelays(Delays):
    """Any delay between two bounds."""

    low_s: float
    high_s: float

    @property
    def max_s(self) -> float:
        return self.high_s

    @property
    def mean_s(self) -> float:
        return (self.low_s + self.high_s) / 2

    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        return rng.uniform(self.low_s, self.high_s, size)


@dataclass(frozen=True)
class ZipfDelays(Delays):
    """Whole milliseconds k = 1 … max with probability proportional to ``k ** -exponent``."""

    exponent: float
    end_s: float  # of the support

    @property
    def max_s(self) -> float:
        return self.end_s

    @property
    def mean_s(self) -> float:
        share = np.diff(self._cumulative, prepend=0.0)
        return float(share @ np.arange(1, len(share) + 1)) / 1e3

    @cached_property
    def _cumulative(self) -> NDArray[np.float64]:
        support = np.arange(1, round(self.end_s * 1e3) + 1, dtype=np.float64)
        cumulative: NDArray[np.float64] = np.cumsum(support**-self.exponent)
        cumulative /= cumulative[-1]
        return cumulative

    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        rank = np.searchsorted(self._cumulative, rng.random(size), side="right")
        return (rank + 1) / 1e3


@dataclass(frozen=True)
class ExponentialDelays(Delays):
    """Memoryless delays, capped at the quantile ``1 - TAIL`` (20.7 means).

    >>> round(ExponentialDelays(0.240).max_s, 3)
    4.974
    """

    scale_s: float

    @property
    def max_s(self) -> float:
        return -self.scale_s * math.log(TAIL)

    @property
    def mean_s(self) -> float:
        return self.scale_s

    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        return rng.standard_exponential(size) * self.scale_s


@dataclass(frozen=True)
class GammaDelays(Delays):
    """Gamma delays, capped where Chernoff's bound on the tail is ``TAIL``.

    >>> delays = GammaDelays(60, 0.004)
    >>> round(delays.mean_s, 3), round(delays.max_s, 3)
    (0.24, 0.498)
    """

    shape: float
    scale_s: float

    @property
    def mean_s(self) -> float:
        return self.shape * self.scale_s

    @cached_property
    def max_s(self) -> float:
        return self.scale_s * _chernoff_quantile(self.shape, TAIL)

    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        return rng.standard_gamma(self.shape, size) * self.scale_s


@dataclass(frozen=True)
class ChangingDelays(Delays):
    """One distribution up to a time, another from then on."""

    first: Delays
    change_s: float  # from the start of the traffic
    second: Delays

    @property
    def max_s(self) -> float:
        return max(self.first.max_s, self.second.max_s)

    @property
    def mean_s(self) -> float:
        return self.second.mean_s

    def _draw_s(self, rng: np.random.Generator, size: int) -> NDArray[np.float64]:
        return self.second._draw_s(rng, size)

    def draw_at_us(
        self, rng: np.random.Generator, since_start_us: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        both = (self.first, self.second)
        before, after = (kind.draw_us(rng, len(since_start_us)) for kind in both)
        return np.where(since_start_us < self.change_s * 1e6, before, after)


def _chernoff_quantile(shape: float, tail: float) -> float:
    """Return the x above the mean where ``(x / shape) ** shape * exp(shape - x)`` is ``tail``."""

    def excess(x: float) -> float:
        return shape * math.log(x / shape) + shape - x - math.log(tail)

    low, high = shape, shape + 1.0
    while excess(high) > 0:
        high += high - low
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return high


def parse_delays(text: str) -> Delays:
    """Read the distribution that a short text names.

    >>> parse_delays("uniform:0:300ms")
    UniformDelays(low_s=0.0, high_s=0.3)
    >>> parse_delays("gamma:60:4ms")
    GammaDelays(shape=60.0, scale_s=0.004)
    >>> parse_delays("constant:1ms|60s|constant:2ms").change_s
    60.0
    """
    kind, *arguments = text.strip().split(":")
    build = _BUILDERS.get(kind)
    try:
        if "|" in text:
            first, change, second = text.split("|")
            return ChangingDelays(
                parse_delays(first), parse_duration_s(change), parse_delays(second)
            )
        if build is None:
            raise ValueError(kind)
        return build(*arguments)
    except (TypeError, ValueError, UsageError):
        raise UsageError(f"'{text}' names no network delays; valid forms: {VALID_FORMS}") from None


def _constant(delay: str) -> Delays:
    return ConstantDelays(parse_duration_s(delay))


def _uniform(low: str, high: str) -> Delays:
    low_s, high_s = parse_duration_s(low), parse_duration_s(high)
    if low_s > high_s:
        raise ValueError("bounds are reversed")
    return UniformDelays(low_s, high_s)


def _zipf(exponent: str, largest: str) -> Delays:
    max_s = parse_duration_s(largest)
    if max_s < 1e-3:
        raise ValueError("the support starts at one millisecond")
    return ZipfDelays(_finite(exponent), round(max_s, 3))


def _exponential(mean: str) -> Delays:
    return ExponentialDelays(_positive(parse_duration_s(mean)))


def _gamma(shape: str, scale: str) -> Delays:
    return GammaDelays(_positive(_finite(shape)), _positive(parse_duration_s(scale)))


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("not a finite number")
    return number


def _positive(number: float) -> float:
    if number <= 0:
        raise ValueError("must be above zero")
    return number


_BUILDERS: dict[str, Callable[..., Delays]] = {
    "constant": _constant,
    "uniform": _uniform,
    "zipf": _zipf,
    "exponential": _exponential,
    "gamma": _gamma,
}
