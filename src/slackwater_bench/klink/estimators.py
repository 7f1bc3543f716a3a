"""How often the estimators of the sweeping watermark are right, and how sharp they are.

Epochs are simulated from seeded traffic: tumbling windows, each with a few micro-batches
at random times, which show their events' delays and the frontier lag.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from slackwater import progress
from slackwater.core.errors import UsageError
from slackwater.progress import DelayStats, SweepEstimator
from slackwater.statistics.intervals import binomial_interval
from slackwater.traffic import Rate, Timeline, parse_delays
from slackwater_bench.tables import figures_table

Ints = NDArray[np.int64]

WINDOW_US = 3_000_000
BATCHES = 2  # micro-batches an epoch: on Spark, the sweep and the emit
LEAST_EPOCHS = 20  # so that both halves have predictions
CHUNK = 100  # epochs simulated at once: bounds memory


@dataclass(frozen=True, slots=True)
class Epoch:
    """What an engine sees of one epoch."""

    batches: tuple[DelayStats, ...]
    sweep_delay_s: float


def simulate(delays: str, rate: float, epochs: int, seed: int) -> Iterator[Epoch]:
    """Yield epochs of a stream with the given delays.

    >>> first, second = simulate("constant:150ms", rate=1000, epochs=2, seed=1)
    >>> 0.15 <= first.sweep_delay_s < 0.151
    True
    """
    rng = np.random.default_rng(seed)
    # Windows do not end with an event: a part of the distance of two events lies between.
    phase_us = int(rng.integers(ceil(1e6 / rate)))
    timeline = Timeline(Rate((0.0,), (rate,)), parse_delays(delays), seed=seed, start_us=phase_us)
    first_us = -(-(timeline.start_us + _margin_us(timeline)) // WINDOW_US) * WINDOW_US
    for number in range(0, epochs, CHUNK):
        ends = first_us + np.arange(number, min(number + CHUNK, epochs)) * WINDOW_US
        yield from _chunk(timeline, ends, rng)


def measure(
    epochs: int,
    rate: float,
    delays: list[str],
    confidences: Sequence[float],
    seed: int,
    on_step: Callable[[str], None] = lambda step: None,
) -> dict[str, Any]:
    """Measure coverage and width of every estimator under every setting and its change.

    Parameters
    ----------
    epochs, rate
        Windows simulated for each setting, and events per second.
    delays
        Settings, as :func:`slackwater.traffic.parse_delays` reads them. With more than one, each
        also changes into the next half way, and the last into the first.
    confidences
        Wanted shares of sweeps inside the predicted interval.
    seed
        The same seed gives the same result.
    on_step
        Told what is simulated next.
    """
    if epochs < LEAST_EPOCHS:
        raise UsageError(f"at least {LEAST_EPOCHS} epochs are needed, not {epochs}")
    if not rate > 0:
        raise UsageError(f"the rate must be above zero, not {rate:g}")
    rows = []
    for label, parts in _settings(delays):
        on_step(label)
        seen = _epochs(parts, rate, epochs, seed)
        for confidence in confidences:
            for name in progress.names():
                estimator = progress.load(name, confidence=confidence)
                head = {"estimator": name, "delays": label, "confidence": confidence}
                rows.append(head | _judge(estimator, seen))
    return {"epochs": epochs, "rate": rate, "rows": rows}


def table(result: dict[str, Any]) -> Table:
    """Return the result for people; intervals are binomial, 95 %."""
    title = f"Sweeps inside the predicted interval, {result['epochs']} epochs"
    columns = "delays, estimator, wanted, inside, low…high, 1st half, 2nd half, width ms"
    found = figures_table(f"{title}, {result['rate']:g} events/s", columns, names=2)
    for row in result["rows"]:
        found.add_row(
            row["delays"],
            row["estimator"],
            f"{row['confidence']:.1%}",
            f"{row['coverage']:.1%}",
            f"{row['coverage_low']:.1%}…{row['coverage_high']:.1%}",
            f"{row['first_half']:.1%}",
            f"{row['second_half']:.1%}",
            f"{row['width_s'] * 1e3:.1f}",
        )
    return found


def _settings(delays: list[str]) -> list[tuple[str, list[str]]]:
    """Return labels, and the delays of each half where they differ."""
    steady = [(one, [one]) for one in delays]
    if len(delays) < 2:
        return steady
    following = [*delays[1:], delays[0]]
    return steady + [
        (f"{one}, then {other}", [one, other]) for one, other in zip(delays, following, strict=True)
    ]


def _epochs(parts: list[str], rate: float, epochs: int, seed: int) -> list[Epoch]:
    half = epochs // 2
    lengths = [epochs] if len(parts) == 1 else [half, epochs - half]
    seen: list[Epoch] = []
    for number, (part, length) in enumerate(zip(parts, lengths, strict=True)):
        seen.extend(simulate(part, rate, length, seed + number))
    return seen


def _judge(estimator: SweepEstimator, epochs: list[Epoch]) -> dict[str, Any]:
    """Judge an estimator: it predicts each epoch from those before it, then sees it."""
    hits: list[bool] = []
    widths: list[float] = []
    first_half = 0  # how many of the hits and misses are of it
    for number, epoch in enumerate(epochs):
        predicted = estimator.estimate()
        if predicted is not None:
            low_s, high_s = predicted.interval(estimator.confidence)
            hits.append(low_s <= epoch.sweep_delay_s <= high_s)
            widths.append(high_s - low_s)
            first_half += number < len(epochs) // 2
        for batch in epoch.batches:
            estimator.observe(batch)
        estimator.close_epoch(epoch.sweep_delay_s)
    coverage = binomial_interval(sum(hits), len(hits))
    return {
        "epochs": len(hits),
        "coverage": coverage.estimate,
        "coverage_low": coverage.low,
        "coverage_high": coverage.high,
        "width_s": float(np.mean(widths)),
        "first_half": float(np.mean(hits[:first_half])),
        "second_half": float(np.mean(hits[first_half:])),
    }


def _chunk(timeline: Timeline, ends: Ints, rng: np.random.Generator) -> Iterator[Epoch]:
    """Yield the epochs of the windows with the given ends."""
    margin_us = _margin_us(timeline)
    seen = timeline.arrived(int(ends[0]) - margin_us, int(ends[-1]) + margin_us)
    frontier = np.maximum.accumulate(seen.event_us)
    sweeps = seen.arrival_us[np.searchsorted(frontier, ends)]
    # Batches run while the window is open, so that none of them sees its sweep.
    times = np.sort(ends[:, None] - rng.integers(1, WINDOW_US, size=(len(ends), BATCHES)), axis=1)
    read = np.searchsorted(seen.arrival_us, times.ravel(), side="right")
    lags_s = (times.ravel() - frontier[read - 1]) / 1e6
    first = np.searchsorted(seen.arrival_us, ends[0] - WINDOW_US)
    delays_s = (seen.arrival_us - seen.event_us) / 1e6
    sums = [
        np.diff(np.concatenate(([0.0], np.cumsum(values)))[np.concatenate(([first], read))])
        for values in (np.ones_like(delays_s), delays_s, delays_s**2)
    ]
    stats = [
        DelayStats(int(count), total_s, squares_s2, lag_s)
        for count, total_s, squares_s2, lag_s in np.column_stack([*sums, lags_s]).tolist()
    ]
    for number, delay_us in enumerate((sweeps - ends).tolist()):
        yield Epoch(tuple(stats[number * BATCHES : (number + 1) * BATCHES]), delay_us / 1e6)


def _margin_us(timeline: Timeline) -> int:
    """Time around an epoch that holds everything that matters for it."""
    gap_us = 1e6 / timeline.rate.per_second[0]
    return WINDOW_US + 2 * timeline.delays.max_us + 2 * ceil(gap_us)
