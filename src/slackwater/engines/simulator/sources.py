"""Where events and watermarks come from."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from slackwater.engines.simulator.arrivals import SEEN_S, Feed, SimulatedArrivals
from slackwater.engines.simulator.flow import Floats
from slackwater.engines.simulator.pipeline import PipelineSegment
from slackwater.engines.simulator.sweeps import first_arrivals


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

    def __init__(self, segments: Sequence[PipelineSegment], began_s: float, seed: int) -> None:
        self._queries = [segment.query for segment in segments]
        self._rng = np.random.default_rng(seed)
        starts_s = [s.query.starts_s if s.is_first else math.inf for s in segments]
        self._starts_s = began_s + np.array(starts_s)
        feeds = zip(self._queries, self._starts_s.tolist(), strict=True)
        self._arrivals = SimulatedArrivals(
            [Feed(q.rate, at_s, q.bursts) for q, at_s in feeds], seed
        )
        self._total = np.zeros(len(segments))
        self.rate_seen = np.array([query.rate for query in self._queries])  # lately
        # In bursts and between them the first event past a window's end is taken to come as at the
        # mean rate: a difference of milliseconds.
        self._firsts = [first_arrivals(query.rate, query.delays) for query in self._queries]
        self._next_end_s = [
            q.window.next_end(began_s + q.starts_s + q.delay_s) for q in self._queries
        ]
        self._sweep_s = [
            self._draw(place) if segment.is_first else math.inf
            for place, segment in enumerate(segments)
        ]
        self.held_s = 0.0  # for how long they were held back so far
        self._ended_s: list[float | None] = [None] * len(segments)  # on the clock, the next ends

    def take(self, now_s: float, step_s: float) -> tuple[Floats, list[Mark | None]]:
        """Return what comes within a step: events, and where there is one a watermark."""
        until_s = now_s + step_s - self.held_s
        before, self._total = self._total, self._arrivals.total(until_s)
        came: Floats = self._total - before
        self._measure(came / step_s, until_s - step_s, step_s)
        for place, end_s in enumerate(self._next_end_s):
            if end_s <= until_s and self._ended_s[place] is None:
                self._ended_s[place] = end_s + self.held_s
        marks: list[Mark | None] = [None] * len(self._queries)
        for place in [p for p, at_s in enumerate(self._sweep_s) if at_s <= until_s]:
            rate = float(came[place]) / step_s
            marks[place] = self._sweep(place, rate, until_s)
        return came, marks

    def came_s(self, place: int, position: float) -> float:
        """Return when so many events had come, in the time of the streams."""
        return self._arrivals.came_s(place, position)

    def _measure(self, rates: Floats, from_s: float, step_s: float) -> None:
        weight = np.where(self._starts_s <= from_s, -math.expm1(-step_s / SEEN_S), 0.0)
        self.rate_seen += weight * (rates - self.rate_seen)

    def _sweep(self, place: int, rate: float, until_s: float) -> Mark:
        end_s, came_s = self._next_end_s[place], self._sweep_s[place]
        position = float(self._total[place]) - rate * (until_s - came_s)
        ended_s = self._ended_s[place]
        assert ended_s is not None, "a window's watermark came before its end"
        self._next_end_s[place] = self._queries[place].window.next_end(end_s)
        self._ended_s[place] = None
        self._sweep_s[place] = self._draw(place)
        return Mark(end_s, ended_s, max(0.0, position), came_s)

    def _draw(self, place: int) -> float:
        """Draw when the next window's watermark arrives, in the time of its stream."""
        query = self._queries[place]
        delays = self._firsts[place].draw(self._rng, query.streams)
        return self._next_end_s[place] + query.delay_s + float(delays.max())
