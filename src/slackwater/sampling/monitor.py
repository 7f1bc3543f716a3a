"""The workload monitor: what a sampler knows of a query's input and of its results."""

import math
from collections import deque

import numpy as np

from slackwater.sampling.delays import RecentDelays
from slackwater.sampling.needs import LEAST_ROOM, MOST_ROOM
from slackwater.sampling.plan import ANY_NUMBER

DEVIATIONS = 2.0  # by which the room is under-estimated, so that most windows have enough

ENOUGH_WINDOWS = 5  # to know how much their numbers of rows scatter
UNUSUAL = 4.0  # standard deviations


class Monitor:
    """Delays of the input, and the room that the last windows would have had.

    Parameters
    ----------
    cycles
        m: how many windows are remembered.

    Examples
    --------
    >>> monitor = Monitor()
    >>> for room in (2.0, 2.0, 2.0):
    ...     monitor.close_window(room, rows=900.0)
    >>> round(monitor.room, 3)
    2.0
    """

    def __init__(self, cycles: int = 20) -> None:
        self.delays = RecentDelays(cycles)
        self._log_rooms: deque[float] = deque(maxlen=cycles)
        self._rows: deque[float] = deque(maxlen=cycles)  # of windows that were not unusual
        self._unusual = 0  # windows in a row that were

    def close_window(self, room: float, rows: float) -> None:
        """Take a window that came out.

        Parameters
        ----------
        room
            The smallest over its rows, see :mod:`slackwater.sampling.needs`.
        rows
            How many rows it stands for in all.
        """
        self._log_rooms.append(math.log(min(max(room, LEAST_ROOM), MOST_ROOM)))
        low, high = self.usual_rows
        self._unusual = 0 if low <= rows <= high else self._unusual + 1
        if self._unusual >= ENOUGH_WINDOWS:  # that is how it is now
            self._rows.clear()
            self._unusual = 0
        if self._unusual == 0:
            self._rows.append(rows)
        self.delays.close_cycle()

    @property
    def known(self) -> bool:
        """Whether there is enough to plan by."""
        return self.delays.known and len(self._log_rooms) >= 2

    @property
    def room(self) -> float:
        """What the next windows can afford; carefully.

        The poorest window of many does not count: the first of a query is not a whole one.
        """
        logs = np.sort(self._log_rooms)[len(self._log_rooms) >= ENOUGH_WINDOWS :]
        return float(np.exp(logs.mean() - DEVIATIONS * logs.std()))

    @property
    def usual_rows(self) -> tuple[float, float]:
        """Between which numbers of rows N a window lies if nothing has changed.

        Delays that have grown look like a window with fewer rows, for which none are missing.
        """
        if len(self._rows) < ENOUGH_WINDOWS:
            return ANY_NUMBER
        rows = np.array(self._rows)
        mean = float(rows.mean())
        margin = UNUSUAL * float(np.hypot(rows.std(), math.sqrt(mean)))
        return max(0.0, mean - margin), mean + margin
