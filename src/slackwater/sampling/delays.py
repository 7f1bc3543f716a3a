"""Delays as they were seen lately, and what share of a stretch of events arrives in time."""

from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

# Delays come as quantiles, each standing for a share of the rows; the tail is looked at closely.
_SHARES = np.array([0.04] * 24 + [0.02, 0.01, 0.005, 0.003, 0.0015, 0.0005])
LEVELS: tuple[float, ...] = tuple((np.cumsum(_SHARES) - _SHARES / 2).round(5).tolist())

_CHANGED = 2.2  # Kolmogorov-Smirnov: by chance once in about ten thousand cycles
_STEP_S = 0.005  # of a wait: no finer than the clock of a micro-batch
_COARSE = 0.03  # what quantiles of a sketch may be off


class RecentDelays:
    """Delays of the last cycles; forgets them when they no longer fit.

    Parameters
    ----------
    cycles
        m: how many are remembered.

    Examples
    --------
    >>> delays = RecentDelays()
    >>> delays.add(np.linspace(0.0, 0.3, len(LEVELS)), rows=1000)
    >>> delays.close_cycle()
    >>> delays.arrived_shares(wait_s=0.0, substream_s=0.6, number=2).round(2).tolist()
    [0.79, 1.0]
    """

    def __init__(self, cycles: int = 20) -> None:
        self._cycles: deque[tuple[Floats, Floats]] = deque(maxlen=cycles)  # delays, rows
        self._open: list[tuple[Floats, Floats]] = []
        self.largest_s = 0.0
        self.rows = 0.0  # that the remembered cycles stand for

    def add(self, quantiles_s: Floats, rows: float, largest_s: float | None = None) -> None:
        """Add the delays of a batch: its quantiles at ``LEVELS``."""
        if rows <= 0:
            return
        self._open.append((np.maximum(quantiles_s, 0.0), _SHARES * rows))
        seen_s = float(quantiles_s[-1]) if largest_s is None else largest_s
        self.largest_s = max(self.largest_s, seen_s)

    def close_cycle(self) -> None:
        """Close a cycle: only all its rows together have the delays of the stream.

        While a ceiling withholds rows, those that a batch hands out are the slow ones.
        """
        if not self._open:
            return
        cycle = _condensed(*_joined(self._open))
        self._open = []
        if self._cycles and self._differs(cycle):
            self._cycles.clear()
        self._cycles.append(cycle)
        self.rows = float(sum(rows.sum() for _, rows in self._cycles))

    @property
    def known(self) -> bool:
        return bool(self._cycles)

    def arrived_shares(self, wait_s: float, substream_s: float, number: int) -> Floats:
        """Return which part of each sub-stream has arrived ``wait_s`` after the end.

        For the last sub-stream before the end, the one before it, and so on. One more row is
        taken to be later than all that were seen: what is known of few rows is not certain.
        """
        delays, rows = _joined(list(self._cycles))
        ages = wait_s + substream_s * np.arange(1, number + 1)  # of a sub-stream's first event
        in_time = np.clip((ages[:, None] - delays[None, :]) / substream_s, 0.0, 1.0)
        return np.asarray(in_time @ rows / (rows.sum() + 1))

    def _differs(self, cycle: tuple[Floats, Floats]) -> bool:
        """Tell whether a cycle's delays are of another distribution than those remembered."""
        known = _joined(list(self._cycles))
        points = np.sort(np.concatenate([known[0], cycle[0]]))
        gap = np.abs(_distribution(*known, points) - _distribution(*cycle, points)).max()
        noise = np.sqrt(1 / known[1].sum() + 1 / cycle[1].sum())
        return bool(gap > _CHANGED * noise + _COARSE)


def _condensed(delays: Floats, rows: Floats) -> tuple[Floats, Floats]:
    """Return the quantiles at ``LEVELS`` of all, however many batches they came in."""
    order = np.argsort(delays)
    places = np.searchsorted(np.cumsum(rows[order]) / rows.sum(), LEVELS)
    return delays[order][np.minimum(places, len(order) - 1)], _SHARES * rows.sum()


def _joined(parts: list[tuple[Floats, Floats]]) -> tuple[Floats, Floats]:
    delays, rows = zip(*parts, strict=True)
    return np.concatenate(delays), np.concatenate(rows)


def _distribution(delays: Floats, rows: Floats, points: Floats) -> Floats:
    order = np.argsort(delays)
    below = np.concatenate([[0.0], np.cumsum(rows[order])]) / rows.sum()
    return np.asarray(below[np.searchsorted(delays[order], points, side="right")])


def least_wait_s(enough: Callable[[float], bool], most_s: float) -> float:
    """Return the shortest wait for which ``enough`` holds; ``most_s`` if none does.

    >>> round(least_wait_s(lambda wait_s: wait_s >= 0.3, 2.0), 2)
    0.3
    """
    if enough(0.0):
        return 0.0
    low_s, high_s = 0.0, most_s
    while high_s - low_s > _STEP_S:
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (low_s, middle_s) if enough(middle_s) else (middle_s, high_s)
    return high_s
