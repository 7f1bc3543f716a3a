"""Estimates that are right as often as they say, whatever the distribution of delays."""

from math import log, sqrt
from typing import ClassVar

import numpy as np

from slackwater.progress.base import DelayStats, Floats, SweepDelay, SweepEstimator
from slackwater.progress.empirical import EmpiricalDelay
from slackwater.progress.recent import RecentSample

NEWEST = 32  # values that are compared with all before them
SELDOM = 8  # once there are many, one value in so many makes a new estimate: it costs most
MANY = 64
KEPT = 16  # of them after a change; about the first half of them came before it
FALSE_ALARM = 1e-6  # chance that a comparison sees a change where none is
STEERING = 0.1  # step of the miss rate after each epoch, as a share of the wanted miss rate


class Calibrated(SweepEstimator):
    """The last ``history`` frontier lags and sweep delays as a sample, with steered intervals.

    - The prediction is distribution-free: see :class:`EmpiricalDelay`.
    - Adaptive conformal inference: an interval that missed its sweep lets the next ones be
      wider, each hit lets them be a little narrower, so that in the long run a share of
      ``confidence`` is hit. Where nobody sees sweeps, the last lag of each epoch stands in.
      Intervals from lags alone start at zero: where windows end in step with the events (both
      on whole milliseconds, say), sweeps lie at the lower end of the lags or just below it.
    - When the newest values disagree with the older ones (Kolmogorov-Smirnov), the older ones
      are forgotten, and so is what the intervals had missed.

    References
    ----------
    I. Gibbs and E. Candès. Adaptive Conformal Inference Under Distribution Shift. NeurIPS 2021.

    Examples
    --------
    >>> estimator = Calibrated(confidence=0.5)
    >>> for lag_ms in (10, 30, 20, 40, 20, 20, 90):
    ...     estimator.observe(DelayStats.of_lag(lag_ms / 1000))
    >>> estimator.estimate().interval(0.5)
    (0.0, 0.02)
    """

    name: ClassVar[str] = "calibrated"

    def __init__(self, history: int = 400, confidence: float = 0.95) -> None:
        super().__init__(history, confidence)
        self.miss_rate = 1 - confidence  # that intervals are made for; steered
        self._sample = RecentSample(history)
        self._added = 0
        self._sees_sweeps = False
        self._last_lag_s: float | None = None  # of this epoch
        self._before_lag: SweepDelay | None = None  # what was predicted before it was seen
        self._estimate: EmpiricalDelay | None = None
        self._stale = True

    def estimate(self) -> SweepDelay | None:
        if self._stale and len(self._sample):
            self._stale = False
            miss_scale = self.miss_rate / (1 - self.confidence)
            self._estimate = EmpiricalDelay(
                self._sample.ascending, miss_scale, one_sided=not self._sees_sweeps
            )
        return self._estimate

    def _observe(self, delays: DelayStats) -> None:
        if delays.frontier_lag_s is not None:
            self._last_lag_s, self._before_lag = delays.frontier_lag_s, self.estimate()
            self._add(delays.frontier_lag_s)

    def _close_epoch(self, sweep_delay_s: float | None) -> None:
        if sweep_delay_s is not None:
            self._stale |= not self._sees_sweeps
            self._sees_sweeps = True
            self._steer(self.estimate(), sweep_delay_s)
            self._add(sweep_delay_s)
        elif self._last_lag_s is not None:
            self._steer(self._before_lag, self._last_lag_s)
        self._last_lag_s = self._before_lag = None

    def _steer(self, predicted: SweepDelay | None, delay_s: float) -> None:
        if predicted is None:
            return
        low_s, high_s = predicted.interval(self.confidence)
        wanted = 1 - self.confidence
        missed = 0.0 if low_s <= delay_s <= high_s else 1.0
        self.miss_rate += STEERING * wanted * (wanted - missed)

    def _add(self, delay_s: float) -> None:
        self._sample.add(delay_s)
        self._added += 1
        if len(self._sample) >= MANY and self._added % SELDOM:
            return
        self._stale = True
        if len(self._sample) >= 2 * NEWEST and self._changed():
            self._sample.keep_newest(KEPT)
            self.miss_rate = 1 - self.confidence

    def _changed(self) -> bool:
        size = len(self._sample)
        distance = _distance(self._sample.newest(NEWEST), self._sample.ascending)
        # The newest are a part of the sample, which shrinks their distance from it.
        distance *= size / (size - NEWEST)
        critical = sqrt(-log(FALSE_ALARM / 2) / 2 * size / (NEWEST * (size - NEWEST)))
        return distance > critical


def _distance(few: Floats, ascending: Floats) -> float:
    """Return the largest difference of two empirical distribution functions."""
    few = np.sort(few)
    # It is reached at one of the few values, or just below it.
    at = np.searchsorted(few, few, side="right") / len(few)
    below = np.searchsorted(few, few, side="left") / len(few)
    all_at = np.searchsorted(ascending, few, side="right") / len(ascending)
    all_below = np.searchsorted(ascending, few, side="left") / len(ascending)
    return float(max(np.max(np.abs(at - all_at)), np.max(np.abs(below - all_below))))
