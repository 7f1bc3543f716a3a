"""What estimators of the sweeping watermark share.

The *base* of a query's input is the end of its next window plus the configured watermark delay.
The window is swept at ``w``, when the first event with an event time of at least the base
arrives. Estimators predict the *sweep delay* ``w - base``.

The *frontier lag* at time t is t minus the largest event time that has arrived by then. No event
past the base has arrived at ``base + x`` exactly if the frontier lag there is above x, so
``P(w - base > x) = P(frontier lag > x)``: lags seen at micro-batches are samples of sweep delays.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from slackwater.core.errors import UsageError

Floats = NDArray[np.float64]

NEARLY_ALL = 0.998  # confidence of the range that knots span by default


class SweepDelay(ABC):
    """Predicted distribution of ``w - base``, in seconds. Members are frozen dataclasses.

    Times are given as ``elapsed_s``, seconds since the base; negative before it.
    """

    @property
    @abstractmethod
    def mean_s(self) -> float:
        """Expected sweep delay."""

    @abstractmethod
    def interval(self, confidence: float) -> tuple[float, float]:
        """Return a range that holds the sweep delay with the given probability (eq. 7)."""

    @abstractmethod
    def chance(self, elapsed_s: float) -> float:
        """Return the probability that the sweep has arrived by then: ``P(w - base <= elapsed)``."""

    @abstractmethod
    def remaining(self, elapsed_s: float) -> float:
        """Return the expected time until a sweep that has not arrived: ``E[w - t | w > t]``."""

    @abstractmethod
    def best_wait(self, waste_s: float) -> float:
        """Return when to admit the sweep, in seconds after the base.

        The smallest ``x >= 0`` with the least ``x + P(w - base > x) * waste_s``: waiting delays
        the result, and a micro-batch admitted too early wastes ``waste_s`` seconds.
        """

    def knots(self, count: int) -> tuple[Floats, Floats]:
        """Return ascending elapsed times, and ``E[w - base | w - base > elapsed]`` at each of them.

        Below the first the value must be the mean, from the last on it must grow with slope 1.
        """
        elapsed = np.linspace(*self.interval(NEARLY_ALL), count)
        expected = np.array([x + self.remaining(x) for x in elapsed.tolist()])
        expected[0] = self.mean_s
        return elapsed, expected


@dataclass(frozen=True, slots=True)
class DelayStats:
    """Delays of the events of one micro-batch, as far as they are known.

    >>> stats = DelayStats.of_lag(0.02)
    >>> stats.count, stats.frontier_lag_s
    (1, 0.02)
    """

    count: int  # events
    total_s: float  # sum of their delays
    squares_s2: float  # sum of the squares of their delays
    frontier_lag_s: float | None = None  # time of the batch minus the largest event time read

    @classmethod
    def of_lag(cls, lag_s: float) -> "DelayStats":
        """Make them for a source that shows no delays of events: the lag stands for one."""
        return cls(1, lag_s, lag_s * lag_s, lag_s)

    @property
    def finite(self) -> bool:
        """Whether every figure is a number that can be used."""
        figures = (self.total_s, self.squares_s2, self.frontier_lag_s or 0.0)
        return self.count >= 0 and all(map(math.isfinite, figures))


class SweepEstimator(ABC):
    """Base of every estimator.

    A member writes :meth:`_observe`, :meth:`_close_epoch` and :meth:`estimate`. An epoch is the
    time between two sweeps. Figures that are not finite are dropped here.

    Parameters
    ----------
    history
        How much of the past counts: epochs, or samples where an estimator keeps samples (h).
    confidence
        Of the intervals that will be asked for (f).
    """

    name: ClassVar[str] = ""  # as users write it

    def __init__(self, history: int = 400, confidence: float = 0.95) -> None:
        if history < 2:
            raise UsageError(f"history must be at least 2, not {history}")
        if not 0.0 < confidence < 1.0:
            raise UsageError(f"confidence must lie between 0 and 1, not {confidence}")
        self.history = history
        self.confidence = confidence

    def observe(self, delays: DelayStats) -> None:
        """Learn from a micro-batch."""
        if delays.finite:
            self._observe(delays)

    def close_epoch(self, sweep_delay_s: float | None = None) -> None:
        """Take the delay of a sweep after its base; ``None``: nobody saw when it arrived."""
        known = sweep_delay_s is not None and math.isfinite(sweep_delay_s)
        self._close_epoch(sweep_delay_s if known else None)

    @abstractmethod
    def estimate(self) -> SweepDelay | None:
        """Return the delay of the next sweep; ``None`` before anything is known."""

    @abstractmethod
    def _observe(self, delays: DelayStats) -> None:
        """Take in a micro-batch in constant time."""

    @abstractmethod
    def _close_epoch(self, sweep_delay_s: float | None) -> None:
        """Take in the end of an epoch in constant time."""
