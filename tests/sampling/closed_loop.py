"""An approximate query without Spark: traffic, ledger, estimates and sampler in virtual time."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from slackwater import sampling
from slackwater.sampling import Grid, Ledger, Monitor, Promise, estimates
from slackwater.sampling.delays import LEVELS
from slackwater.sampling.estimates import Estimate, Moments, Weights
from slackwater.sampling.ledger import chances
from slackwater.traffic import Reach, Timeline, Traffic

Floats = NDArray[np.float64]
Values = Callable[[NDArray[np.int64]], Floats]  # of events by their number

_DRAWN = np.random.default_rng(7).integers(0, 1 << 40, 1 << 20)


@dataclass
class Outcome:
    """What came out, one entry for a window; of estimates and truths, an array of its groups."""

    waits_s: list[float] = field(default_factory=list)
    rates: list[float] = field(default_factory=list)
    estimates: dict[str, list[Estimate]] = field(default_factory=dict)
    truths: dict[str, list[Floats]] = field(default_factory=dict)

    def errors(self, aggregate: str) -> Floats:
        truth = np.concatenate(self.truths[aggregate])
        return np.abs(self._column(aggregate, "value") - truth) / np.abs(truth)

    def covered(self, aggregate: str) -> Floats:
        truth = np.concatenate(self.truths[aggregate])
        low, high = (self._column(aggregate, end) for end in ("low", "high"))
        return (low - 1e-9 <= truth) & (truth <= high + 1e-9)

    def bounded(self, aggregate: str) -> Floats:
        return self._column(aggregate, "bounded")

    def _column(self, aggregate: str, name: str) -> Floats:
        return np.concatenate([getattr(e, name) for e in self.estimates[aggregate]])


def run(
    traffic: Traffic,
    values: Values,
    *,
    sampler: str = "aion",
    windows: int = 500,
    warm_up: int = 20,
    size_s: float = 3.0,
    batch_s: float = 0.5,
    aggregates: tuple[str, ...] = ("count", "sum", "mean"),
    promise: Promise | None = None,
    groups: int = 1,
) -> Outcome:
    """Batches every ``batch_s`` seconds of virtual time, tumbling windows."""
    promise = promise or Promise()
    grid = Grid(round(size_s * 1e6), round(size_s * 1e6))
    chosen = sampling.load(sampler)
    loop = _Loop(traffic.timeline(), values, grid, chosen, promise, aggregates, groups)
    while len(loop.waits_s) < windows + warm_up:
        loop.batch(round(batch_s * 1e6))
    return loop.outcome(warm_up)


class _Loop:
    def __init__(
        self, timeline: Timeline, values: Values, grid: Grid, sampler, promise, wanted, groups
    ):
        self.timeline, self.values, self.grid = timeline, values, grid
        self.sampler, self.promise, self.wanted = sampler, promise, wanted
        self.groups = groups
        self.monitor = Monitor()
        self.plan = sampler.plan(self.monitor, promise, grid)
        self.now_us = timeline.start_us + 1
        self.ledger = Ledger.begin(self.plan, self.now_us)
        self.reach = Reach(self.now_us, self.ledger.ceiling_us)
        self.open: dict[int, list[tuple[Floats, ...]]] = {}
        self.waits_s: list[float] = []
        self.found: list[tuple[float, dict[str, Estimate], dict[str, Floats]]] = []

    def batch(self, length_us: int) -> None:
        self.now_us += length_us
        closing_us = self.ledger.ceiling_us
        self.ledger = self.ledger.advance(self.plan, self.now_us)
        until = Reach(self.now_us, self.ledger.ceiling_us)
        rows = self.timeline.released(self.reach, until)
        self.reach = until
        drawn = chances(1, 0, rows.index)
        weighed = self.ledger.weigh(rows.event_us, rows.arrival_us, drawn)
        kept = np.flatnonzero(weighed.keep)
        delays = (rows.arrival_us - rows.event_us)[kept] / 1e6
        if len(kept):
            quantiles, largest = np.quantile(delays, LEVELS), float(delays.max())
            self.monitor.delays.add(quantiles, float(len(kept)), largest)
        ends = self.grid.ends_after(rows.event_us)[kept]
        values = self.values(rows.index[kept])
        weights, doubts = weighed.weights[kept, 0], weighed.doubts[kept, 0]
        for end in np.unique(ends).tolist():
            mine = (ends == end) & (weights > 0)
            group = group_of(rows.index[kept][mine], self.groups)
            part = (values[mine], weights[mine], doubts[mine], weighed.rates[kept][mine], group)
            self.open.setdefault(end, []).append(part)
        for end in range(closing_us, self.ledger.ceiling_us, self.grid.slide_us):
            if end in self.open:
                self.close(end)

    def close(self, end: int) -> None:
        wait_s = self.ledger.plan_of(end).wait_us / 1e6
        v, w, d, rate, group = (np.concatenate(c) for c in zip(*self.open.pop(end), strict=True))
        more = w * (w - 1)

        def by_group(terms: Floats) -> Floats:
            return np.bincount(group, weights=terms, minlength=self.groups)

        weights = Weights(*(by_group(x) for x in (np.ones_like(w), w, more, w * d)))
        largest = np.zeros(self.groups)
        np.maximum.at(largest, group, np.abs(v))
        sums = [by_group(x) for x in (w * v, w * v * v, more * v, more * v * v, w * d * v)]
        moments = Moments(*sums, largest)
        found = {}
        if "count" in self.wanted:
            found["count"] = estimates.count(weights, self.promise)
        if "sum" in self.wanted:
            found["sum"] = estimates.total(weights, moments, self.promise)
        if "mean" in self.wanted:
            found["mean"] = estimates.mean(weights, moments, self.promise)
        if "quantile" in self.wanted:
            found["quantile"] = estimates.quantile(0.9, [v], [w], self.promise)
        room = min(float(estimate.room.min()) for estimate in found.values())
        self.monitor.close_window(room, float(w.sum()))
        self.plan = self.sampler.plan(self.monitor, self.promise, self.grid)
        self.waits_s.append(wait_s)
        first = self.timeline.happened(end - self.grid.size_us - 1)
        numbers = np.arange(first, self.timeline.happened(end - 1))
        everything, group = self.values(numbers), group_of(numbers, self.groups)
        count = np.bincount(group, minlength=self.groups).astype(float)
        total = np.bincount(group, weights=everything, minlength=self.groups)
        truth = {"count": count, "sum": total, "mean": total / count}
        if self.groups == 1:
            quantile = np.quantile(everything, 0.9, method="inverted_cdf")
            truth["quantile"] = np.array([quantile])
        low, high = self.ledger.plan_of(end).usual
        usual = low <= w.sum() <= high
        found = {name: replace(e, bounded=e.bounded & usual) for name, e in found.items()}
        self.found.append((len(w) / float((1 / rate).sum()), found, truth))

    def outcome(self, warm_up: int) -> Outcome:
        outcome = Outcome(self.waits_s[warm_up:])
        for rate, found, truth in self.found[warm_up:]:
            outcome.rates.append(rate)
            for name, estimate in found.items():
                outcome.estimates.setdefault(name, []).append(estimate)
                outcome.truths.setdefault(name, []).append(truth[name])
        return outcome


def group_of(numbers: NDArray[np.int64], groups: int) -> NDArray[np.int64]:
    """The group of each event, at random and always the same."""
    return _DRAWN[numbers % len(_DRAWN)] % groups
