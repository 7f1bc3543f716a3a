"""Slack: how long a query can wait before its next result is late (eq. 1 and 8)."""

import numpy as np
from numpy.typing import NDArray

from slackwater.progress.base import Floats, SweepDelay
from slackwater.progress.normal import CERTAIN_S, NormalDelay, mean_excess

KNOTS = 32  # of a distribution without a closed form

_EMPTY, _NORMAL, _KNOTS, _ARRIVED = range(4)


def expected_slack(now_s: float, base_s: float, delay: SweepDelay | None, cost_s: float) -> float:
    """Return ``E[w - t | w > t] - cost``; a sweep of which nothing is known comes at its base.

    >>> expected_slack(10.0, 12.0, NormalDelay(0.5, 0.1), cost_s=1.0)
    1.5
    """
    known = delay if delay is not None else NormalDelay(0.0, 0.0)
    return known.remaining(now_s - base_s) - cost_s


def stepwise_slack(
    now_s: float,
    base_s: float,
    delay: SweepDelay,
    cost_s: float,
    step_s: float,
    confidence: float = 1.0,
) -> float:
    """Return the published sum over steps (eq. 8), with the condition and the deviation mended.

    It is slow and here to check the closed forms by. Every step counts with its end, so over the
    whole range (confidence 1) it lies above the expectation by less than a step. With a smaller
    confidence it loses what lies beyond the interval, as published: past the interval it is 0.

    >>> round(stepwise_slack(10.0, 12.0, NormalDelay(0.5, 0.1), 1.0, step_s=0.001), 4)
    1.5005
    """
    elapsed_s = now_s - base_s
    left = 1 - delay.chance(elapsed_s)
    if left <= 0:
        return -cost_s
    low_s, high_s = delay.interval(min(confidence, 1 - 1e-13))
    start_s = max(elapsed_s, low_s)
    slack_s, before = 0.0, delay.chance(start_s)
    step = 0
    while (x := start_s + step * step_s) <= high_s:
        after = delay.chance(x + step_s)
        slack_s += (after - before) / left * (x + step_s - elapsed_s - cost_s)
        before, step = after, step + 1
    return slack_s


class SlackTable:
    """Slack of many queries as one vector.

    A row is one input of one query. Rows change one at a time, when something was learnt about
    them; asking for all slacks is a few operations on whole arrays. Distributions without a
    closed form are kept as a few knots of ``E[w | w > x]``, which never falls with x, and
    straight lines between them.

    Parameters
    ----------
    rows
        To begin with; the table grows when a row beyond them is put.

    Examples
    --------
    >>> table = SlackTable()
    >>> table.put(0, base_s=12.0, delay=NormalDelay(0.5, 0.1), cost_s=1.0)
    >>> table.put_arrived(1, arrived_s=9.0, cost_s=0.5)
    >>> table.slacks(10.0).tolist()
    [1.5, -1.5]
    >>> table.least(10.0)
    1
    """

    def __init__(self, rows: int = 0) -> None:
        self._rows = 0
        self._kind: NDArray[np.int8] = np.empty(0, dtype=np.int8)
        self._base = np.empty(0)  # of the sweep, or its arrival
        self._cost = np.empty(0)
        self._mean = np.empty(0)
        self._std = np.empty(0)
        self._elapsed = np.empty((0, KNOTS))
        self._expected = np.empty((0, KNOTS))
        self._delays: dict[int, SweepDelay] = {}  # whose knots a row holds
        self._reserve(rows)

    def __len__(self) -> int:
        return self._rows

    def put(self, row: int, base_s: float, delay: SweepDelay | None, cost_s: float) -> None:
        """Put a sweep that has not arrived; without a delay it is expected at its base."""
        if delay is None or isinstance(delay, NormalDelay):
            self._set(row, _NORMAL, base_s, cost_s)
            self._delays.pop(row, None)
            self._mean[row], self._std[row] = (delay.mean_s, delay.std_s) if delay else (0.0, 0.0)
        else:
            self._set(row, _KNOTS, base_s, cost_s)
            if self._delays.get(row) is not delay:  # usually it is the same again
                self._delays[row] = delay
                self._elapsed[row], self._expected[row] = delay.knots(KNOTS)
                self._mean[row] = delay.mean_s

    def put_arrived(self, row: int, arrived_s: float, cost_s: float) -> None:
        """Put a sweep that has arrived: its slack is minus the time it waited, minus the cost."""
        self._set(row, _ARRIVED, arrived_s, cost_s)

    def clear(self, row: int) -> None:
        """Clear a row: nothing is due in it, and its slack is infinite."""
        self._set(row, _EMPTY, 0.0, 0.0)

    def slacks(self, now_s: float, rows: NDArray[np.intp] | None = None) -> Floats:
        """Return the slack of some rows, of all where none are named."""
        rows = np.arange(self._rows) if rows is None else rows
        slacks = np.full(len(rows), np.inf)
        kind = self._kind[rows]
        for wanted, remaining in (
            (_NORMAL, self._remaining_normal),
            (_KNOTS, self._remaining_knots),
            (_ARRIVED, lambda _, elapsed: -elapsed),
        ):
            places = np.flatnonzero(kind == wanted)
            if len(places):
                found = rows[places]
                slacks[places] = remaining(found, now_s - self._base[found]) - self._cost[found]
        return slacks

    def least(self, now_s: float) -> int | None:
        """Return the row with the least slack; ``None`` if nothing is due anywhere.

        The search starts from infinity; from zero, as published, it would never find a row that
        has slack left.
        """
        slacks = self.slacks(now_s)
        if not len(slacks):
            return None
        row = int(np.argmin(slacks))
        return row if slacks[row] < np.inf else None

    def _remaining_normal(self, rows: NDArray[np.intp], elapsed: Floats) -> Floats:
        mean, std = self._mean[rows], self._std[rows]
        spread = std > CERTAIN_S
        scale = np.where(spread, std, 1.0)
        excess = scale * mean_excess((elapsed - mean) / scale)
        return np.where(spread, excess, np.maximum(mean - elapsed, 0.0))

    def _remaining_knots(self, rows: NDArray[np.intp], elapsed: Floats) -> Floats:
        places = self._elapsed[rows]
        passed = np.count_nonzero(places <= elapsed[:, None], axis=1)
        low, high = np.maximum(passed - 1, 0), np.minimum(passed, KNOTS - 1)
        each = np.arange(len(rows))
        left, right = places[each, low], places[each, high]
        start, end = self._expected[rows, low], self._expected[rows, high]
        width = right - left
        inside = width > 0
        share = np.where(inside, (elapsed - left) / np.where(inside, width, 1.0), 0.0)
        expected = start + share * (end - start)
        # Outside the knots: the mean before the first, a constant rest after the last.
        expected = np.where(passed == 0, self._mean[rows], expected)
        return np.where(passed == KNOTS, end - right, expected - elapsed)

    def _set(self, row: int, kind: int, base_s: float, cost_s: float) -> None:
        self._reserve(row + 1)
        self._kind[row], self._base[row], self._cost[row] = kind, base_s, cost_s

    def _reserve(self, rows: int) -> None:
        """Make room for so many rows; doubling, so that growing row by row stays cheap."""
        room = len(self._kind)
        if rows > room:
            more = max(rows, 2 * room) - room
            self._kind = np.concatenate((self._kind, np.full(more, _EMPTY, dtype=np.int8)))
            for name in ("_base", "_cost", "_mean", "_std", "_elapsed", "_expected"):
                array: Floats = getattr(self, name)
                setattr(self, name, np.concatenate((array, np.zeros((more, *array.shape[1:])))))
        self._rows = max(self._rows, rows)
