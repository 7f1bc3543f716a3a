"""The estimator as published, with only its base mended."""

from collections import deque
from math import sqrt
from typing import ClassVar

from slackwater.progress.base import DelayStats, SweepDelay, SweepEstimator
from slackwater.progress.normal import NormalDelay


class Paper(SweepEstimator):
    """Klink's estimator (equations 3 to 6): the mean delay of events, normally distributed.

    ``mu_i`` is the mean and ``chi_i`` the mean square of the delays of epoch i. Over the last h
    epochs the mean is ``mean(mu_i)`` and eq. 6 reduces to ``(mean(chi_i) - mean(mu_i ** 2)) / h``:
    the variance of a *mean* delay. The window is swept by the first event past its base, which
    is neither late on average nor that certain, so the intervals hold almost no sweep. The base
    is the window's end plus the watermark delay; the published equations leave it out.

    References
    ----------
    O. Farhat, K. Daudjee, L. Querzoni. Klink: Progress-Aware Scheduling for Streaming Data
    Systems. SIGMOD 2021.

    Examples
    --------
    >>> estimator = Paper()
    >>> for _ in range(2):
    ...     estimator.observe(DelayStats(count=2, total_s=0.4, squares_s2=0.1))
    ...     estimator.close_epoch()
    >>> delay = estimator.estimate()
    >>> round(delay.mean_s, 3), round(delay.std_s, 3)
    (0.2, 0.071)
    """

    name: ClassVar[str] = "paper"

    def __init__(self, history: int = 400, confidence: float = 0.95) -> None:
        super().__init__(history, confidence)
        self._epochs: deque[tuple[float, float]] = deque()  # mu_i, chi_i
        self._added = 0
        self._means = self._squares = self._mean_squares = 0.0  # sums of mu, chi, mu ** 2
        self._start_epoch()

    def estimate(self) -> SweepDelay | None:
        epochs = len(self._epochs)
        if not epochs:
            return None
        variance = (self._squares - self._mean_squares) / epochs / epochs
        return NormalDelay(self._means / epochs, sqrt(max(0.0, variance)))

    def _observe(self, delays: DelayStats) -> None:
        self._count += delays.count
        self._total_s += delays.total_s
        self._squares_s2 += delays.squares_s2

    def _close_epoch(self, sweep_delay_s: float | None) -> None:
        if self._count:
            self._append(self._total_s / self._count, self._squares_s2 / self._count)
        self._start_epoch()

    def _start_epoch(self) -> None:
        self._count = 0
        self._total_s = self._squares_s2 = 0.0

    def _append(self, mean: float, square: float) -> None:
        self._epochs.append((mean, square))
        self._added += 1
        self._add(mean, square, 1)
        if len(self._epochs) > self.history:
            self._add(*self._epochs.popleft(), -1)
        if self._added % self.history == 0:
            self._sum_again()

    def _add(self, mean: float, square: float, sign: int) -> None:
        self._means += sign * mean
        self._squares += sign * square
        self._mean_squares += sign * mean * mean

    def _sum_again(self) -> None:
        """Sum again, because rounding errors of running sums would grow for ever.

        Once in h epochs it costs nothing.
        """
        self._means = self._squares = self._mean_squares = 0.0
        for mean, square in self._epochs:
            self._add(mean, square, 1)
