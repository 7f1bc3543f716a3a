"""Epochs of a query: which window is next, and what it still needs.

An epoch ends with a sweeping watermark, the first that completes a window. On micro-batches two
things follow from it: the *sweep*, the batch that reads the event that moves the watermark past
the window's end, and in append mode the *emit*, the batch after it that runs with that watermark.
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

from slackwater.core.model import QueryMetrics, Sweep
from slackwater.core.windows import Deadlines
from slackwater.progress.base import DelayStats, SweepDelay, SweepEstimator
from slackwater.progress.normal import NormalDelay
from slackwater.progress.ticks import Ticks

Stage = Literal["learn", "sweep", "emit", "free"]

RETRY_S = 0.02  # pause before a sweep that came too early is tried again, at least
SURE = 2  # batches that must show it before the largest watermark is taken to count
AHEAD_S = 0.05  # event times so little ahead of our clock are not taken for a clock that is
FORGET_AHEAD = 0.02  # of the difference, at each batch
TICK_STD_S = 0.01  # of a delivery at a fixed time
LEVEL_S = 10.0  # events so new: the source has been read to its end, or nearly
CATCH_UP = 1.5  # seconds of event time read in a second: more than can come in
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
        self._delays_s = delays
        self._largest = 0  # batches in a row whose watermark was the largest of its inputs'
        self._ahead_s = 0.0  # by how much event times are ahead of our clock
        self._ticks = Ticks()
        self.hands_out_more = False  # whether its batches look as if more were there, whatever time
        self._moved_to_s = 0.0  # the watermark that was last observed
        self.watermark_delay_s = self._awaited_s(delays)
        self._windows = deadlines.closing
        self.period_s = min((w.slide_s for w in self._windows), default=1.0)  # between two sweeps
        self._single = len(delays) == 1
        self.last_read_s = -math.inf  # when input was last read to its end
        self.behind = False  # whether the last batch left rows that had long been there
        # Until something was read nothing is known of the stream's progress.
        self.stage: Stage = "learn" if deadlines.has_deadline else "free"
        self.window_end_s = math.inf
        self.following_end_s = math.inf  # of the window after those that the next batch closes
        self.arrival: SweepDelay | None = None  # of the last input: when a sweep finds something
        self.interval_s = (0.0, 0.0)  # of that, with the estimator's confidence
        self.first_arrivals: list[SweepDelay] = []  # of each input
        self._best_wait: tuple[float, float] | None = None  # for a waste, and how long

    def adopt(self, deadlines: Deadlines) -> bool:
        """Take deadlines that differ in nothing but the watermarks' delays; whether they do.

        How long stragglers are waited for may change while a query runs; what was learnt stays.
        """
        delays = [i.watermark_delay_s for i in deadlines.inputs if i.watermark_delay_s is not None]
        same = (deadlines.windows, deadlines.output_mode, len(deadlines.inputs), len(delays)) == (
            self.deadlines.windows,
            self.deadlines.output_mode,
            len(self.deadlines.inputs),
            sum(i.watermark_delay_s is not None for i in self.deadlines.inputs),
        )
        if same:
            self.deadlines, self._delays_s = deadlines, delays
            self.watermark_delay_s = self._awaited_s(delays)
        return same

    def _awaited_s(self, delays_s: Sequence[float]) -> float:
        """Return the delay of the input that Spark waits for: the longest, or where the largest
        of several watermarks counts (``multipleWatermarkPolicy``), the shortest.
        """
        if not delays_s:
            return 0.0
        return min(delays_s) if self._largest >= SURE else max(delays_s)

    @property
    def base_s(self) -> float:
        """The time when the sweeping watermark would be there if no event were delayed."""
        return self.window_end_s + self.watermark_delay_s - self._ahead_s

    def update(self, metrics: QueryMetrics) -> None:
        """Take new metrics; cheap when they tell nothing new."""
        before, self._metrics = self._metrics, metrics
        if metrics.rows != before.rows:  # a batch without data does not show the frontier
            self._observe(metrics, before)
        if metrics.sweep is not None and metrics.sweep != before.sweep:
            if before.sweep is None:  # lags that were seen until now say nothing of it
                self._whole = self._make()
            self._see_sweep(metrics.sweep)
        self._advance(metrics)

    def _see_sweep(self, sweep: Sweep) -> None:
        """Take a sweeping watermark that was seen to arrive: no need to conclude it from lags.

        Nor would that do where rows come in bursts, from another query: their lag is never less
        than the time at which they were looked for.
        """
        delay_s = max(0.0, sweep.arrived_s - sweep.end_s - self._offset_s)
        self._whole.observe(DelayStats(1, delay_s, delay_s * delay_s))
        self._whole.close_epoch(delay_s)
        self._predict()

    @property
    def following_s(self) -> float:
        """The time when the sweeping watermark of the window after that is expected."""
        mean_s = self.arrival.mean_s if self.arrival is not None else 0.0
        return self.following_end_s + self._offset_s + mean_s

    def delivery_s(self, from_s: float) -> tuple[float, float] | None:
        """Return when the first delivery comes from then on, and how long after the one before it.

        None where the source has no clock, as far as is known.
        """
        period_s = self._ticks.period_s
        if period_s is None or self._ticks.between:
            return None
        return self._ticks.delivery_s(from_s), period_s

    def ready_s(self, waste_s: float, last_try_s: float) -> float:
        """Return from when on a sweep is worth its cost.

        ``waste_s`` is what a sweep that finds nothing costs, ``last_try_s`` when input was last
        looked at.
        """
        if self.behind:
            return 0.0  # there are rows for it
        wait_s = self._wait_s(waste_s)
        late_s = last_try_s - self.base_s
        if late_s < 0:
            return self.base_s + wait_s
        left_s = self.arrival.remaining(late_s) if self.arrival is not None else 0.0
        pause_s = min(self.period_s, max(RETRY_S, left_s, PATIENCE * late_s))
        return max(self.base_s + wait_s, last_try_s + pause_s)

    def _wait_s(self, waste_s: float) -> float:
        """Return the best wait, worked out anew only when the waste has changed by a third."""
        if self.arrival is None:
            return 0.0
        if self._best_wait is None or not 0.7 < waste_s / self._best_wait[0] < 1.4:
            # Who comes too early loses a batch and has still to wait for the arrival.
            loss_s = waste_s + max(0.0, self.arrival.mean_s)
            self._best_wait = max(waste_s, 1e-6), self.arrival.best_wait(loss_s)
        return self._best_wait[1]

    def _observe(self, metrics: QueryMetrics, before: QueryMetrics) -> None:
        """Learn the sweep delay from the frontier's lag behind the batch's start.

        Both have the same distribution.
        """
        start_s = metrics.batch_start_s
        coming_s = self._coming_s(metrics)
        unread = (metrics.backlog_rows or 0.0) - (metrics.buffered_rows or 0.0)
        self.behind = unread > _shallow(metrics) or self._catches_up(metrics, before)
        if start_s is None or self.behind:
            return  # the batch was not let read to the frontier
        self.last_read_s = start_s
        if metrics.sweep is not None:
            return  # somebody sees the sweeps themselves
        if coming_s is None and metrics.max_event_s is not None:
            self._ticks.observe(start_s, metrics.max_event_s)
        if not self._single and metrics.next_watermark_s is None:
            start_s = before.batch_start_s  # what that batch read is known only now
        if coming_s is None or start_s is None:
            return
        parts_s = metrics.input_watermarks_s
        self._watch_policy(parts_s, metrics.next_watermark_s)
        lag_s = start_s - coming_s - self.watermark_delay_s
        self._ticks.observe(start_s, coming_s + self.watermark_delay_s)
        self._watch_clocks(lag_s)
        lag_s += self._ahead_s
        moved, self._moved_to_s = coming_s > self._moved_to_s, coming_s
        usual_s = self.arrival.mean_s if self.arrival is not None else math.inf
        if not moved and lag_s > usual_s + self.period_s:
            return  # an input is silent: that is no lag of the stream
        self._whole.observe(DelayStats.of_lag(max(0.0, lag_s)))
        if len(parts_s) > 1:
            self._observe_inputs(start_s, parts_s)
        self._predict()

    @property
    def _offset_s(self) -> float:
        """From a window's end to its base."""
        return self.watermark_delay_s - self._ahead_s

    def find_nothing(self, at_s: float, asked: bool = False) -> None:
        """Take it that there was nothing to read.

        Parameters
        ----------
        asked
            The source was only asked whether the window's sweep has come.
        """
        self.behind = False
        if asked and self.stage == "sweep":
            self._ticks.miss(at_s, self.window_end_s + self.watermark_delay_s)
        elif not asked:
            self._ticks.find_nothing(at_s)

    def _catches_up(self, metrics: QueryMetrics, before: QueryMetrics) -> bool:
        """Tell whether a source that tells no backlog has more: its events are old, and the last
        batch came nearer to the present. Until two batches ran, old events are enough.
        """
        newest_s, start_s = metrics.max_event_s, metrics.batch_start_s
        if metrics.backlog_rows is not None or newest_s is None or start_s is None:
            return False
        if start_s - newest_s < LEVEL_S:
            return False
        if self.hands_out_more or before.max_event_s is None or before.batch_start_s is None:
            return True
        return newest_s - before.max_event_s > CATCH_UP * (start_s - before.batch_start_s)

    def _watch_policy(self, parts_s: tuple[float, ...], whole_s: float | None) -> None:
        """Find out which of several watermarks Spark takes; equal ones do not tell."""
        if len(parts_s) > 1 and whole_s is not None and max(parts_s) > min(parts_s):
            knew = self._largest >= SURE
            self._largest = self._largest + 1 if whole_s == max(parts_s) else 0
            if knew != (self._largest >= SURE):
                self.watermark_delay_s = self._awaited_s(self._delays_s)
                self._ahead_s, self._whole = 0.0, self._make()  # what was learnt is of another base

    def _watch_clocks(self, lag_s: float) -> None:
        """Follow event times that are ahead of our clock, which no delay of events can explain."""
        if lag_s + self._ahead_s < -AHEAD_S:
            self._ahead_s = -lag_s
        elif self._ahead_s:  # forgotten slowly: the nearest to our clock may come seldom
            self._ahead_s = max(0.0, self._ahead_s - FORGET_AHEAD * (lag_s + self._ahead_s))

    def _predict(self) -> None:
        before, self.arrival = self.arrival, self._estimate()
        if self.arrival is not None and self.arrival is not before:
            self._best_wait = None
            self.interval_s = self.arrival.interval(self._whole.confidence)
        found = (one.estimate() for one in self._inputs)
        self.first_arrivals = [estimate for estimate in found if estimate is not None]

    def _estimate(self) -> SweepDelay | None:
        """Return when the sweep comes: with the next delivery, where the source has a clock."""
        if self._ticks.period_s is None or not math.isfinite(self.base_s):
            return self._whole.estimate()
        at_s = self._ticks.next_s(self.window_end_s + self.watermark_delay_s)
        return NormalDelay(max(0.0, at_s - self.base_s), TICK_STD_S)

    def _observe_inputs(self, start_s: float, watermarks_s: tuple[float, ...]) -> None:
        while len(self._inputs) < len(watermarks_s):
            self._inputs.append(self._make())
        for one, watermark_s in zip(self._inputs, watermarks_s, strict=False):
            lag_s = start_s - watermark_s - self._offset_s
            one.observe(DelayStats.of_lag(max(0.0, lag_s)))

    def _advance(self, metrics: QueryMetrics) -> None:
        coming_s = self._coming_s(metrics)
        if not self.deadlines.has_deadline or coming_s is None:
            return
        final_s = coming_s if self.deadlines.output_mode != "append" else metrics.watermark_s
        if final_s is None:  # the first batch: whatever it closed is not out yet
            final_s = coming_s - self.period_s
        end_s = self._end_after(final_s)
        seen = metrics.sweep is not None  # then its epoch is closed already
        if end_s > self.window_end_s and math.isfinite(self.window_end_s) and not seen:
            self._whole.close_epoch(None)
            for one in self._inputs:
                one.close_epoch(None)
        moved = end_s != self.window_end_s
        self.window_end_s, self.following_end_s = end_s, self._end_after(coming_s)
        if moved and self._ticks.period_s is not None:
            self._predict()  # its phase is another one
        self.stage = "emit" if end_s <= coming_s else "sweep"

    def _coming_s(self, metrics: QueryMetrics) -> float | None:
        """Return the next batch's watermark: told by the engine, else from the newest event read.

        Of several inputs the engine shows only the first one's events: then it is the watermark
        that the last batch ran with, which is a batch late.
        """
        ran_s = metrics.watermark_s or 0.0
        if metrics.next_watermark_s is not None:
            coming_s = max(metrics.next_watermark_s, ran_s)
        elif self._single and metrics.max_event_s is not None:
            coming_s = max(metrics.max_event_s - self.watermark_delay_s, ran_s)
        else:
            coming_s = ran_s
        return coming_s if coming_s > 0 else None  # an input without events keeps it at the epoch

    def _end_after(self, time_s: float) -> float:
        return min(window.next_end(time_s) for window in self._windows)


def _shallow(metrics: QueryMetrics) -> float:
    """Return how many rows may be left over because they came while the batch ran."""
    return 2.0 * (metrics.batch_s or 0.0) * (metrics.arrival_rate or 0.0) + 10.0
