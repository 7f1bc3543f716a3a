"""Figures of a set of measurements, and how sure they are.

Windows of one run are not independent: a slow second makes all of them late. Intervals therefore
resample whole runs. With fewer than three runs they resample stretches of each run, and then say
nothing about how much runs differ from each other.
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Values = Sequence[float] | Sequence[Sequence[float]] | Sequence[Array] | Array

RESAMPLES = 1000
SEED = 20
RUNS_ENOUGH = 3  # to resample runs; two would give three different samples
RUN_LENGTH_ENOUGH = 4  # values to resample stretches of a run
CELLS = 1 << 22  # of one matrix of resamples: bounds memory

Z = 1.959964  # 97.5 % quantile of the normal distribution
# The same of Student's t, by degrees of freedom from 1.
T = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


class Interval(NamedTuple):
    """A figure and its 95 % confidence interval; ``nan`` where the data cannot tell."""

    estimate: float
    low: float
    high: float

    @property
    def known(self) -> bool:
        """Whether the data were enough for an interval.

        >>> Interval(1.0, math.nan, math.nan).known
        False
        """
        return math.isfinite(self.low) and math.isfinite(self.high)


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Return mean and quantiles, as in every report.

    >>> summary([1.0, 2.0, 3.0])["mean"]
    2.0
    >>> summary([])["p99"] is None
    True
    """
    if len(values) == 0:
        return dict.fromkeys(("mean", "p50", "p90", "p99", "max"))
    array = np.asarray(values)
    p50, p90, p99 = np.quantile(array, (0.5, 0.9, 0.99))
    figures = {"mean": array.mean(), "p50": p50, "p90": p90, "p99": p99, "max": array.max()}
    return {name: round(float(value), 4) for name, value in figures.items()}


def mean_interval(values: Values, seed: int = SEED) -> Interval:
    """Return the mean of all values with its 95 % confidence interval.

    Parameters
    ----------
    values
        One sequence for each run, or the values of a single run in their order.
    seed
        Of the resampling; the same values give the same interval.

    >>> mean_interval([[1.0], [2.0], [3.0]]).estimate
    2.0
    >>> mean_interval([[2.0, 2.0], [2.0], [2.0]])
    Interval(estimate=2.0, low=2.0, high=2.0)
    >>> mean_interval([5.0])
    Interval(estimate=5.0, low=nan, high=nan)
    """
    return _interval(_runs(values), None, seed)


def quantile_interval(values: Values, level: float, seed: int = SEED) -> Interval:
    """Return a quantile of all values with its 95 % confidence interval.

    Parameters
    ----------
    values
        One sequence for each run, or the values of a single run in their order.
    level
        Between 0 and 1. No resampling sees beyond the largest value: the upper end for a high
        quantile of few values is too low.
    seed
        Of the resampling.

    >>> found = quantile_interval([[float(n) for n in range(101)]] * 3, 0.9)
    >>> found.estimate, round(found.low), round(found.high)
    (90.0, 90, 90)
    """
    return _interval(_runs(values), level, seed)


def ratio_interval(
    mine: Values, theirs: Values, level: float | None = None, seed: int = SEED
) -> Interval:
    """Return the ratio of two means (or of two quantiles), runs paired by their place.

    Parameters
    ----------
    mine, theirs
        One sequence for each repeat, in the same order; pairs with an empty side are left out.
    level
        The quantile to compare; the mean if not given.
    seed
        Of the resampling.

    Repeats that are slow for both sides cancel out:

    >>> found = ratio_interval([[1.0], [2.0], [4.0]], [[2.0], [4.0], [8.0]])
    >>> [round(value, 6) for value in found]
    [0.5, 0.5, 0.5]
    """
    ours, others = _split(mine), _split(theirs)
    if len(ours) != len(others):
        raise ValueError(f"{len(ours)} runs cannot be paired with {len(others)}")
    pairs = [(a, b) for a, b in zip(ours, others, strict=True) if len(a) and len(b)]
    top, bottom = [a for a, _ in pairs], [b for _, b in pairs]
    if not pairs or not (below := _figure(bottom, level)) > 0:
        return Interval(math.nan, math.nan, math.nan)
    estimate = _figure(top, level) / below
    if len(pairs) >= RUNS_ENOUGH:
        weights = _run_weights(len(pairs), np.random.default_rng(seed))
        samples = _by_runs(top, level, weights), _by_runs(bottom, level, weights)
        if estimate <= 0 or min(map(np.min, samples)) <= 0:
            return Interval(estimate, math.nan, math.nan)
        # Logarithms, so that a ratio and its inverse have the same interval.
        spread = _spread(np.log(samples[0]) - np.log(samples[1]), len(pairs))
        return Interval(estimate, estimate * math.exp(-spread), estimate * math.exp(spread))
    if not _long_enough(top + bottom):
        return Interval(estimate, math.nan, math.nan)
    # One generator after the other: stretches of the two sides are drawn independently.
    generator = np.random.default_rng(seed)
    above, under = _by_blocks(top, level, generator), _by_blocks(bottom, level, generator)
    if np.min(under) <= 0:
        return Interval(estimate, math.nan, math.nan)
    return _percentiles(estimate, above / under, min(_blocks(top), _blocks(bottom)))


def binomial_interval(successes: float, trials: int) -> Interval:
    """Return a share with its 95 % confidence interval after Wilson.

    Parameters
    ----------
    successes
        How often it happened; need not be whole when it comes from a rounded share.
    trials
        How often it could have.

    >>> [round(value, 3) for value in binomial_interval(8, 10)]
    [0.8, 0.49, 0.943]
    >>> binomial_interval(0, 0).known
    False
    """
    if trials <= 0:
        return Interval(math.nan, math.nan, math.nan)
    share = successes / trials
    middle = share + Z**2 / (2 * trials)
    reach = Z * math.sqrt(share * (1 - share) / trials + Z**2 / (4 * trials**2))
    scale = 1 + Z**2 / trials
    low, high = (middle - reach) / scale, (middle + reach) / scale
    # Rounding must not put the share outside at 0 and 1.
    return Interval(share, max(0.0, min(low, share)), min(1.0, max(high, share)))


def student_t(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t.

    >>> student_t(2), round(student_t(20), 3), round(student_t(10**9), 3)
    (4.303, 2.086, 1.96)
    """
    if freedom <= len(T):
        return T[freedom - 1]
    return Z + 2.372 / freedom + 2.82 / freedom**2 + 2.56 / freedom**3


def _split(values: Values) -> list[Array]:
    """Return runs as arrays, without values that are no finite number."""
    if len(values) == 0:
        return []
    sequences = [values] if np.ndim(values[0]) == 0 else values
    arrays = [np.asarray(sequence, dtype=np.float64) for sequence in sequences]
    return [array[np.isfinite(array)] for array in arrays]


def _runs(values: Values) -> list[Array]:
    return [run for run in _split(values) if len(run)]


def _figure(runs: list[Array], level: float | None) -> float:
    pooled = np.concatenate(runs)
    return float(pooled.mean() if level is None else np.quantile(pooled, level))


def _interval(runs: list[Array], level: float | None, seed: int) -> Interval:
    if not runs:
        return Interval(math.nan, math.nan, math.nan)
    estimate = _figure(runs, level)
    generator = np.random.default_rng(seed)
    if len(runs) >= RUNS_ENOUGH:
        samples = _by_runs(runs, level, _run_weights(len(runs), generator))
        spread = _spread(samples, len(runs))
        return Interval(estimate, estimate - spread, estimate + spread)
    if not _long_enough(runs):
        return Interval(estimate, math.nan, math.nan)
    return _percentiles(estimate, _by_blocks(runs, level, generator), _blocks(runs))


def _long_enough(runs: list[Array]) -> bool:
    return min(map(len, runs)) >= RUN_LENGTH_ENOUGH


def _spread(samples: Array, runs: int) -> float:
    """Return half the width of an interval from a few resampled runs.

    Percentiles of three resampled runs cover 75 % at best; the resampled standard error with
    Student's t covers 95 % (and the resampled error itself is too small by (n - 1) / n).
    """
    return float(np.std(samples)) * math.sqrt(runs / (runs - 1)) * student_t(runs - 1)


def _percentiles(estimate: float, samples: Array, blocks: int) -> Interval:
    low, high = (float(end) for end in np.quantile(samples, (0.025, 0.975)))
    # Few stretches vary less than they should, as few runs do.
    wider = math.sqrt(blocks / (blocks - 1)) * student_t(blocks - 1) / Z
    return Interval(
        estimate,
        estimate - wider * max(0.0, estimate - low),
        estimate + wider * max(0.0, high - estimate),
    )


def _blocks(runs: list[Array]) -> int:
    return sum(math.ceil(len(run) / _block_length(len(run))) for run in runs)


def _block_length(length: int) -> int:
    """Return a length that covers a slow spell and still leaves many blocks."""
    return max(1, round(math.sqrt(length)))


def _run_weights(runs: int, generator: np.random.Generator) -> Array:
    """Draw how often each run occurs in each resample."""
    chances = np.full(runs, 1 / runs)
    return generator.multinomial(runs, chances, size=RESAMPLES).astype(np.float64)


def _by_runs(runs: list[Array], level: float | None, weights: Array) -> Array:
    sizes = np.array([len(run) for run in runs], dtype=np.float64)
    totals = weights @ sizes
    if level is None:
        means: Array = weights @ np.array([run.sum() for run in runs]) / totals
        return means
    values = np.concatenate(runs)
    order = np.argsort(values)
    labels = np.repeat(np.arange(len(runs)), [len(run) for run in runs])[order]
    # How many values of each run lie at or below each place of the sorted whole.
    ranks = np.cumsum(labels == np.arange(len(runs))[:, None], axis=1)
    wanted = _wanted(level, totals)
    low = np.zeros(len(weights), dtype=np.intp)
    high = np.full(len(weights), len(values) - 1, dtype=np.intp)
    while np.any(low < high):
        middle = (low + high) // 2
        reached = np.einsum("br,rb->b", weights, ranks[:, middle]) >= wanted
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return values[order][low]


def _by_blocks(runs: list[Array], level: float | None, generator: np.random.Generator) -> Array:
    """Resample runs of the same lengths, each put together from stretches of that run."""
    if level is None:
        return _block_means(runs, generator)
    values = np.concatenate(runs)
    order = np.argsort(values)
    found = []
    for size in _chunks(len(values)):
        counts = np.hstack([_block_weights(len(run), size, generator) for run in runs])
        reached = np.cumsum(counts[:, order], axis=1)
        places = np.argmax(reached >= _wanted(level, reached[:, -1])[:, None], axis=1)
        found.append(values[order][places])
    return np.concatenate(found)


def _block_means(runs: list[Array], generator: np.random.Generator) -> Array:
    """Resample means, which need the sum of each stretch only."""
    sums, drawn = np.zeros(RESAMPLES), 0
    for run in runs:
        block = _block_length(len(run))
        before = np.concatenate(([0.0], np.cumsum(run)))
        starts = _block_starts(len(run), RESAMPLES, generator)
        sums += (before[block:] - before[:-block])[starts].sum(axis=1)
        drawn += block * starts.shape[1]
    return sums / drawn


def _chunks(length: int) -> Iterator[int]:
    """Yield numbers of resamples to make at once, so that their matrix stays small."""
    left = RESAMPLES
    while left:
        size = min(left, max(1, CELLS // length))
        yield size
        left -= size


def _block_starts(length: int, size: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw where the stretches of each of ``size`` resamples begin."""
    block = _block_length(length)
    return generator.integers(length - block + 1, size=(size, math.ceil(length / block)))


def _block_weights(length: int, size: int, generator: np.random.Generator) -> Array:
    """Draw how often each value of a run occurs in each of ``size`` resamples."""
    rows = np.arange(size)[:, None] * (length + 1)
    first = (rows + _block_starts(length, size, generator)).ravel()
    cells = size * (length + 1)
    # Each stretch adds one from its start on and takes it away after its end.
    steps = np.bincount(first, minlength=cells).astype(np.float64)
    steps -= np.bincount(first + _block_length(length), minlength=cells)
    return np.cumsum(steps.reshape(size, length + 1)[:, :length], axis=1)


def _wanted(level: float, totals: Array) -> Array:
    """Return how many values must lie at or below the quantile."""
    # A hair less, so that rounding in the product does not skip a value.
    wanted: Array = np.maximum(level * totals - 1e-9, 0.5)
    return wanted
