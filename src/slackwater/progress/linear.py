"""The linear regression that the published estimator was compared with."""

from math import sqrt
from typing import ClassVar

from slackwater.progress.base import DelayStats, SweepDelay, SweepEstimator
from slackwater.progress.normal import NormalDelay


class Linear(SweepEstimator):
    """Least squares from the mean delay of one epoch to the sweep delay of the next.

    Old epochs fade with a weight of ``1 - 1 / history``. The spread comes from the errors of the
    predictions, taken as normal. Where nobody sees sweeps, the last frontier lag of an epoch
    stands in.

    The publication says "gradient descent" and no more: not what it predicts from what, nor
    where its interval comes from. This is the regression with its exact solution.

    Examples
    --------
    >>> estimator = Linear()
    >>> for delay_s in (0.1, 0.2, 0.3, 0.1, 0.2):
    ...     estimator.observe(DelayStats.of_lag(delay_s))
    ...     estimator.close_epoch(0.02)
    >>> round(estimator.estimate().mean_s, 3)
    0.02
    """

    name: ClassVar[str] = "linear"

    def __init__(self, history: int = 400, confidence: float = 0.95) -> None:
        super().__init__(history, confidence)
        self._keep = 1 - 1 / history
        # Weighted sums over epochs: x is a mean delay, y the next sweep delay.
        self._weight = self._x = self._y = self._xx = self._xy = 0.0
        self._errors = self._error_squares = 0.0  # weighted: how many, and their squares' sum
        self._previous_s: float | None = None  # mean delay of the last epoch that had events
        self._count = 0
        self._total_s = 0.0
        self._last_lag_s: float | None = None

    def estimate(self) -> SweepDelay | None:
        if self._previous_s is None or self._weight == 0.0:
            return None
        variance = self._error_squares / self._errors if self._errors else 0.0
        return NormalDelay(self._predict(self._previous_s), sqrt(variance))

    def _observe(self, delays: DelayStats) -> None:
        self._count += delays.count
        self._total_s += delays.total_s
        if delays.frontier_lag_s is not None:
            self._last_lag_s = delays.frontier_lag_s

    def _close_epoch(self, sweep_delay_s: float | None) -> None:
        target_s = self._last_lag_s if sweep_delay_s is None else sweep_delay_s
        if target_s is not None and self._previous_s is not None:
            self._learn(self._previous_s, target_s)
        if self._count:
            self._previous_s = self._total_s / self._count
        self._count, self._total_s, self._last_lag_s = 0, 0.0, None

    def _learn(self, mean_s: float, sweep_s: float) -> None:
        if self._weight:
            error = sweep_s - self._predict(mean_s)
            self._errors = self._keep * self._errors + 1.0
            self._error_squares = self._keep * self._error_squares + error * error
        self._weight = self._keep * self._weight + 1.0
        self._x = self._keep * self._x + mean_s
        self._y = self._keep * self._y + sweep_s
        self._xx = self._keep * self._xx + mean_s * mean_s
        self._xy = self._keep * self._xy + mean_s * sweep_s

    def _predict(self, mean_s: float) -> float:
        centre_s, level_s = self._x / self._weight, self._y / self._weight
        spread = self._xx - self._x * centre_s
        # Delays that hardly vary say nothing about a slope.
        if spread <= 1e-9 * self._xx:
            return level_s
        slope = (self._xy - self._x * level_s) / spread
        return level_s + slope * (mean_s - centre_s)
