"""Aion: as large a sample as the promise needs, of the rows that are there at the deadline."""

from typing import ClassVar

import numpy as np

from slackwater.sampling.base import Sampler
from slackwater.sampling.delays import least_wait_s
from slackwater.sampling.grid import Grid
from slackwater.sampling.monitor import Monitor
from slackwater.sampling.plan import CellPlan
from slackwater.sampling.promise import Promise
from slackwater.sampling.rates import Floats, needed_room, substream_rates

_WHOLE = 0.9999  # a sub-stream of which so much has arrived counts as complete


class Aion(Sampler):
    """Windows close at their end if what has arrived by then is enough, else as soon as it is.

    Rows that will be late are treated as rows that were not sampled: how many there are follows
    from the delays, and the others are weighed up for them. So a window needs to wait only when
    even all rows that have arrived are too few for the promise.

    References
    ----------
    Farhat, *Progress-aware scheduling and straggler-free sampling*, thesis, 2020, chapter 4.
    """

    name: ClassVar[str] = "aion"

    def _plan(self, monitor: Monitor, promise: Promise, grid: Grid) -> CellPlan:
        delays, room = monitor.delays, monitor.room
        substream_s = grid.substream_us / 1e6

        def shares_after(wait_s: float) -> Floats:
            return delays.arrived_shares(wait_s, substream_s, grid.substreams)

        wait_s = least_wait_s(
            lambda wait_s: needed_room(shares_after(wait_s)) <= room,
            min(delays.largest_s, self.max_wait_s),
        )
        shares = np.maximum(shares_after(wait_s), 1e-3)
        rates = substream_rates(shares, room)
        late = shares[shares < _WHOLE]  # the sub-streams next to the end
        doubts = np.sqrt((1 - late) / (late * max(delays.rows, 1.0)))
        return CellPlan(
            wait_us=round(wait_s * 1e6),
            rates=_short(rates.round(4).tolist(), -(-grid.slide_us // grid.substream_us)),
            shares=tuple(late.round(6).tolist()),
            doubts=tuple(doubts.round(6).tolist()),
            usual=monitor.usual_rows,
        )


def _short(rates: list[float], most: int) -> tuple[float, ...]:
    """Return the rates of a cell, without the end that only repeats itself: the last goes on.

    >>> _short([0.5, 0.3, 0.3, 0.3], 4)
    (0.5, 0.3)
    """
    rates = rates[:most]
    while len(rates) > 1 and rates[-1] == rates[-2]:
        rates.pop()
    return tuple(rates)
