"""Epochs of a query: which window is next, and what it still needs.

An epoch ends with a sweeping watermark, the first that completes a window. On micro-batches two
things follow from it: the *sweep*, the batch that reads the event that moves the watermark past
the window's end, and in append mode the *emit*, the batch after it that runs with that watermark.
"""

import math
from collections.abc import Callable
from typing import Literal

from slackwater.core.model import QueryMetrics
from slackwater.core.windows import Deadlines
from slackwater.progress.base import DelayStats, SweepDelay, SweepEstimator

Stage = Literal["learn", "sweep", "emit", "free"]

RETRY_S = 0.02  # pause before a sweep that came too early is tried again, at least
PATIENCE = 0.25  # and as a share of the time since it was due, so that a dry source costs little


class QueryEpochs:
    """Follows one query from metrics alone.

    Parameters
    ----------
    deadlines
        The windows and inputs that discovery found.
    estimator
        Makes the estimator of a sweeping watermark's delay: one for the query as a whole (the
        last of its inputs decides when a sweep finds something) and, where the engine tells
        inputs apart, one for each of them.
    """

    def __init__(self, deadlines: Deadlines, estimator: Callable[[], SweepEstimator]) -> None:
        self.deadlines = deadlines
        self._make = estimator
        self._whole = estimator()
        self._inputs: list[SweepEstimator] = []
        self._metrics = QueryMetrics()
        delays = [i.watermark_delay_s for i in deadlines.inputs if i.watermark_delay_s is not None]
        self.watermark_delay_s = max(delays, default=0.0)
        # Until something was read nothing is known of the stream's progress.
        self.stage: Stage = "learn" if deadlines.has_deadline else "free"
        self.window_end_s = math.inf
        self.arrival: SweepDelay | None = None  # of the last input: when a sweep finds something
        self.first_arrivals: list[SweepDelay] = []  # of each input

    @property
    def base_s(self) -> float:
        """When the sweeping watermark would be there if no event were delayed."""
        return self.window_end_s + self.watermark_delay_s

    def update(self, metrics: QueryMetrics) -> None:
        """Take new metrics; cheap when they tell nothing new."""
        before, self._metrics = self._metrics, metrics
        if metrics.rows != before.rows:  # a batch without data does not show the frontier
            self._observe(metrics)
        self._advance(metrics)

    def ready_s(self, waste_s: float, last_try_s: float | None) -> float:
        """From when on a sweep is worth its cost.

        ``waste_s`` is what a sweep that finds nothing costs, ``last_try_s`` when one last tried.
        """
        wait_s = self.arrival.best_wait(waste_s) if self.arrival is not None else 0.0
        if last_try_s is None or last_try_s < self.base_s:
            return self.base_s + wait_s
        late_s = last_try_s - self.base_s
        left_s = self.arrival.remaining(late_s) if self.arrival is not None else 0.0
        return max(self.base_s + wait_s, last_try_s + max(RETRY_S, left_s, PATIENCE * late_s))

    def _observe(self, metrics: QueryMetrics) -> None:
        """The lag of the frontier behind the batch's start has the sweep delay's distribution."""
        if metrics.batch_start_s is None or (metrics.backlog_rows or 0) > _shallow(metrics):
            return  # the batch was not let read to the frontier
        coming_s = self._coming_s(metrics)
        if coming_s is None:
            return
        lag_s = metrics.batch_start_s - coming_s - self.watermark_delay_s
        self._whole.observe(DelayStats.of_lag(max(0.0, lag_s)))
        self.arrival = self._whole.estimate()
        parts = metrics.input_watermarks_s
        if len(parts) > 1:
            while len(self._inputs) < len(parts):
                self._inputs.append(self._make())
            for one, part_s in zip(self._inputs, parts, strict=False):
                lag_s = metrics.batch_start_s - part_s - self.watermark_delay_s
                one.observe(DelayStats.of_lag(max(0.0, lag_s)))
            found = (one.estimate() for one in self._inputs)
            self.first_arrivals = [estimate for estimate in found if estimate is not None]

    def _advance(self, metrics: QueryMetrics) -> None:
        coming_s = self._coming_s(metrics)
        if not self.deadlines.has_deadline or coming_s is None:
            return
        final_s = coming_s if self.deadlines.output_mode != "append" else metrics.watermark_s
        if final_s is None:  # the first batch: whatever it closed is not out yet
            final_s = self._end_before(coming_s)
        end_s = self._end_after(final_s)
        if end_s > self.window_end_s and math.isfinite(self.window_end_s):
            self._whole.close_epoch(None)
            for one in self._inputs:
                one.close_epoch(None)
        self.window_end_s = end_s
        self.stage = "emit" if end_s <= coming_s else "sweep"

    def _coming_s(self, metrics: QueryMetrics) -> float | None:
        """The watermark of the next batch: told by the engine, else from the newest event read."""
        if metrics.next_watermark_s is not None:
            return max(metrics.next_watermark_s, metrics.watermark_s or 0.0)
        if metrics.max_event_s is None:
            return None
        return max(metrics.max_event_s - self.watermark_delay_s, metrics.watermark_s or 0.0)

    def _end_after(self, time_s: float) -> float:
        return min(window.next_end(time_s) for window in self.deadlines.windows)

    def _end_before(self, time_s: float) -> float:
        slides = [w.slide_s for w in self.deadlines.windows if math.isfinite(w.slide_s)]
        return time_s - min(slides)


def _shallow(metrics: QueryMetrics) -> float:
    """Rows that may be left over though nothing limited the batch: they came while it ran."""
    return 2.0 * (metrics.batch_s or 0.0) * (metrics.arrival_rate or 0.0) + 10.0
