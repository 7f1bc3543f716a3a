"""Where events and watermarks come from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.engines.simulator.flow import Floats
from slackwater.engines.simulator.pipeline import Segment
from slackwater.engines.simulator.sweeps import FirstArrivals


@dataclass(slots=True)
class Mark:
    """A sweeping watermark on its way."""

    end_s: float  # of its window, in the time of the streams
    ended_s: float  # the same on the clock
    position: float  # events of the source before it
    came_s: float  # to the source, in the time of the streams


class Sources:
    """The sources of a node's queries; while they are held back, their time stands still.

    Parameters
    ----------
    segments
        Those that do not begin at a source get nothing here.
    """

    def __init__(self, segments: Sequence[Segment], began_s: float, seed: int) -> None:
        self._queries = [segment.query for segment in segments]
        self._rng = np.random.default_rng(seed)
        self._rate = np.array([query.rate for query in self._queries])
        starts_s = [s.query.starts_s if s.is_first else math.inf for s in segments]
        self._starts_s = began_s + np.array(starts_s)
        arrivals = {(q.rate, q.delays): FirstArrivals(q.rate, q.delays) for q in self._queries}
        self._arrivals = [arrivals[query.rate, query.delays] for query in self._queries]
        self._next_end_s = [
            q.window.next_end(began_s + q.starts_s + q.delay_s) for q in self._queries
        ]
        self._sweep_s = [
            self._draw(place) if segment.is_first else math.inf
            for place, segment in enumerate(segments)
        ]
        self.held_s = 0.0  # for how long they were held back so far
        self._ended_s: list[float | None] = [None] * len(segments)  # on the clock, the next ends

    def take(self, now_s: float, step_s: float, before: Floats) -> tuple[Floats, list[Mark | None]]:
        """What comes within a step: events, and where there is one a watermark.

        ``before`` are the events that have come so far.
        """
        until_s = now_s + step_s - self.held_s
        came: Floats = self._rate * np.clip(until_s - self._starts_s, 0.0, step_s)
        for place, end_s in enumerate(self._next_end_s):
            if end_s <= until_s and self._ended_s[place] is None:
                self._ended_s[place] = end_s + self.held_s
        marks: list[Mark | None] = [None] * len(self._queries)
        for place in [p for p, at_s in enumerate(self._sweep_s) if at_s <= until_s]:
            total = float(before[place] + came[place])
            marks[place] = self._sweep(place, total, until_s)
        return came, marks

    def _sweep(self, place: int, total: float, until_s: float) -> Mark:
        end_s, came_s = self._next_end_s[place], self._sweep_s[place]
        position = total - float(self._rate[place]) * (until_s - came_s)
        ended_s = self._ended_s[place]
        assert ended_s is not None, "a window's watermark came before its end"
        self._next_end_s[place] = self._queries[place].window.next_end(end_s)
        self._ended_s[place] = None
        self._sweep_s[place] = self._draw(place)
        return Mark(end_s, ended_s, max(0.0, position), came_s)

    def _draw(self, place: int) -> float:
        """When the next window's watermark arrives, in the time of its stream."""
        query = self._queries[place]
        delays = self._arrivals[place].draw(self._rng, query.streams)
        return self._next_end_s[place] + query.delay_s + float(delays.max())
