"""The workload monitor: what a sampler knows of a query's input and of its results."""

import math
from collections import deque

import numpy as np

from slackwater.sampling.delays import RecentDelays
from slackwater.sampling.needs import LEAST_ROOM, MOST_ROOM

DEVIATIONS = 2.0  # by which the room is under-estimated, so that most windows have enough


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
        self._rows: deque[float] = deque(maxlen=cycles)

    def close_window(self, room: float, rows: float) -> None:
        """A window came out.

        Parameters
        ----------
        room
            The smallest over its rows, see :mod:`slackwater.sampling.needs`.
        rows
            How many rows it stands for in all.
        """
        self._log_rooms.append(math.log(min(max(room, LEAST_ROOM), MOST_ROOM)))
        self._rows.append(rows)
        self.delays.close_cycle()

    @property
    def known(self) -> bool:
        """Whether there is enough to plan by."""
        return self.delays.known and len(self._log_rooms) >= 2

    @property
    def room(self) -> float:
        """What the next windows can afford; carefully."""
        logs = np.array(self._log_rooms)
        return float(np.exp(logs.mean() - DEVIATIONS * logs.std()))

    @property
    def rows(self) -> float:
        """N: how many rows a window has."""
        return float(np.mean(self._rows))
