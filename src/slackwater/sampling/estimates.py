"""Values and their intervals from the weighted rows of a window.

A row with weight w stands for w rows: it was kept with probability 1 / w. A sum is estimated by
``sum(w * v)`` (Horvitz and Thompson), with the variance ``sum(w * (w - 1) * v^2)``. What is not
known of the weights themselves, because delays were learnt from a limited number of rows, is a
*doubt*, the same for all groups, and adds to it.

All arrays have one entry for each result row.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from slackwater.sampling.needs import (
    FEW_MISSING,
    FEW_ROWS,
    MOST_MISSING,
    few_missing,
    fits,
    room_for,
    room_for_all,
    room_for_count,
    room_for_few,
)
from slackwater.sampling.promise import Promise

Floats = NDArray[np.float64]

_TOP_SHARE = 0.25  # of the squares in one row: the largest rows rule, and some may not be seen


@dataclass(frozen=True)
class Weights:
    """Sums over the rows of each group."""

    rows: Floats  # n, in the sample
    weight: Floats  # sum(w): the rows that they stand for
    spread: Floats  # sum(w * (w - 1))
    doubt: Floats  # sum(w * d)

    @property
    def missing(self) -> Floats:
        """Rows that are expected to exist and are not in the sample."""
        return np.maximum(self.weight - self.rows, 0.0)


@dataclass(frozen=True)
class Moments:
    """Sums over the values v of each group."""

    total: Floats  # sum(w * v)
    squares: Floats  # sum(w * v^2)
    spread: Floats  # sum(w * (w - 1) * v)
    spread_squares: Floats  # sum(w * (w - 1) * v^2)
    doubt: Floats  # sum(w * d * v)
    largest: Floats  # max(abs(v))


@dataclass(frozen=True)
class Estimate:
    """A value with its interval."""

    value: Floats
    low: Floats
    high: Floats
    room: Floats  # what it could afford, see :mod:`slackwater.sampling.needs`
    bounded: NDArray[np.bool_]  # whether the interval is within the promised error


def _estimate(
    value: Floats, low: Floats, high: Floats, room: Floats, weights: Weights, promise: Promise
) -> Estimate:
    is_normal = weights.missing >= FEW_MISSING
    # Intervals come from the sample as well: those that happen to be narrow are not to be trusted
    # more, so those of a small sample are made wider.
    margin = np.where(is_normal, 1 + 1 / np.sqrt(np.maximum(weights.rows, 1)), 1.0)
    low, high = value - margin * (value - low), value + margin * (high - value)
    half = np.maximum(high - value, value - low)
    allowed = promise.error * np.abs(value)
    # What was used, scaled to an interval that is just allowed: it also knows of doubts.
    fitting = _ratio(weights.spread, weights.weight) * _ratio(allowed, half) ** 2
    room = np.where(is_normal & (half > 0), np.minimum(room, fitting), room)
    return Estimate(value, low, high, room, half <= allowed + 1e-12)


def count(weights: Weights, promise: Promise) -> Estimate:
    """Estimate how many rows there are.

    Where few are missing, intervals are lopsided. The value is then moved, by as little as it
    takes, to where it is within the promised error of all that its interval holds.
    """
    low, high = missing_rows(weights, promise)
    doubt = promise.z * weights.doubt
    room = room_for_count(weights.weight, promise)
    least, most = weights.rows + np.maximum(low - doubt, 0.0), weights.rows + high + doubt
    found = _estimate(weights.weight, least, most, room, weights, promise)
    bounded = fits(found.low, found.high, promise)
    nearest = np.clip(
        found.value, found.high * (1 - promise.error), found.low * (1 + promise.error)
    )
    return replace(found, value=np.where(bounded, nearest, found.value), bounded=bounded)


def total(weights: Weights, moments: Moments, promise: Promise) -> Estimate:
    """Estimate the sum of a column."""
    value = moments.total
    deviation = np.hypot(np.sqrt(np.maximum(moments.spread_squares, 0.0)), moments.doubt)
    student = _student(promise, weights, moments)
    half = student * deviation
    half = _not_below(half, weights, moments.largest, promise)
    variation = _ratio(moments.squares * weights.weight, value**2)
    room = room_for(variation, weights.weight, promise) * (promise.z / student) ** 2
    return _trusted(
        _estimate(value, value - half, value + half, room, weights, promise),
        weights,
        moments,
        promise,
    )


def mean(weights: Weights, moments: Moments, promise: Promise) -> Estimate:
    """Estimate the mean of a column.

    It is a ratio to the number of rows, which has hardly an error of its own.
    """
    value = _ratio(moments.total, weights.weight)
    variance = moments.spread_squares - 2 * value * moments.spread + value**2 * weights.spread
    doubt = moments.doubt - value * weights.doubt
    student = _student(promise, weights, moments)
    half = student * np.hypot(np.sqrt(np.maximum(variance, 0.0)), doubt)
    half = _not_below(half, weights, moments.largest + np.abs(value), promise)
    half = _ratio(half, weights.weight)
    deviation = np.maximum(_ratio(moments.squares, weights.weight) - value**2, 0.0)
    room = room_for(_ratio(deviation, value**2), weights.weight, promise)
    room = room * (promise.z / student) ** 2
    room = room_for_few(room, weights.weight, promise)
    estimate = _estimate(value, value - half, value + half, room, weights, promise)
    estimate = _trusted(estimate, weights, moments, promise)
    return _of_enough_rows(estimate, weights.rows > 0, weights, promise)


def ratio(
    weights: Weights, above: Moments, below: Moments, crossed: Moments, promise: Promise
) -> Estimate:
    """Estimate the sum of one column by that of another; ``crossed`` sums their product."""
    value = _ratio(above.total, below.total)
    variance = above.spread_squares - 2 * value * crossed.spread + value**2 * below.spread_squares
    doubt = above.doubt - value * below.doubt
    student = _student(promise, weights, above)
    half = student * np.hypot(np.sqrt(np.maximum(variance, 0.0)), doubt)
    largest = above.largest + np.abs(value) * below.largest
    half = _ratio(_not_below(half, weights, largest, promise), np.abs(below.total))
    residual = np.maximum(above.squares - 2 * value * crossed.total + value**2 * below.squares, 0.0)
    room = room_for(_ratio(residual * weights.weight, above.total**2), weights.weight, promise)
    room = room * (promise.z / student) ** 2
    room = room_for_few(room, weights.weight, promise)
    estimate = _estimate(value, value - half, value + half, room, weights, promise)
    for moments in (above, below):
        estimate = _trusted(estimate, weights, moments, promise)
    return _of_enough_rows(estimate, below.total != 0, weights, promise)


def quantile(
    level: float, values: list[Floats], weights: list[Floats], promise: Promise
) -> Estimate:
    """Estimate a quantile of a column; its error is one of rank.

    The interval holds the value of every rank that the true one may have.
    """
    halves = np.array([_rank_error(level, each, promise) for each in weights])
    found = [_ranked(level, *each) for each in zip(values, weights, halves, strict=True)]
    value, low, high = (np.array(column) for column in zip(*found, strict=True))
    rows = np.array([each.sum() for each in weights])
    variation = np.full(len(rows), level * (1 - level))
    room = room_for_few(room_for(variation, rows, promise), rows, promise)
    return Estimate(value, low, high, room, halves <= promise.error)


def missing_rows(weights: Weights, promise: Promise) -> tuple[Floats, Floats]:
    """Return the least and the most rows that may be missing."""
    half = promise.z * np.sqrt(weights.spread)
    low, high = np.maximum(weights.missing - half, 0.0), weights.missing + half
    few = np.flatnonzero((weights.missing < FEW_MISSING) & (weights.missing > 0))
    if len(few):
        missing, spread = weights.missing[few], weights.spread[few]
        # As if of the rows that can be missing, all were kept with one probability.
        kept = np.clip(missing / np.maximum(spread, missing), 1e-6, 1 - 1e-6)
        alike = np.maximum(missing * kept / (1 - kept), 0.0)
        low[few], most = few_missing(alike, kept, promise)
        high[few] = np.where(most < MOST_MISSING, most, np.maximum(high[few], most))
    return low, high


def _ranked(
    level: float, values: Floats, weights: Floats, half: float
) -> tuple[float, float, float]:
    """Return the values of a rank and of those at a distance from it."""
    if len(values) == 0:
        return math.nan, math.nan, math.nan
    order = np.argsort(values)
    ranks = np.cumsum(weights[order]) / weights.sum()
    places = np.searchsorted(ranks, np.clip([level, level - half, level + half], 0.0, 1.0) - 1e-12)
    value, low, high = values[order][np.minimum(places, len(values) - 1)].tolist()
    return value, low, high


def _rank_error(level: float, weights: Floats, promise: Promise) -> float:
    if len(weights) == 0:
        return math.inf
    spread = float((weights * (weights - 1)).sum())
    return promise.z * math.sqrt(level * (1 - level) * spread) / float(weights.sum())


def _not_below(half: Floats, weights: Weights, largest: Floats, promise: Promise) -> Floats:
    """Widen where few rows are missing: one may be as large as the largest that was seen."""
    _, most = missing_rows(weights, promise)
    return np.where(weights.missing < FEW_MISSING / 4, np.maximum(half, most * largest), half)


def _trusted(estimate: Estimate, weights: Weights, moments: Moments, promise: Promise) -> Estimate:
    """Distrust a sample that a few large rows rule: it may lack them and not know it.

    All rows are needed there.
    """
    ruled = ruled_by_few(weights, moments)
    all_rows = room_for_all(weights.weight, promise)
    complete = weights.missing <= weights.weight * all_rows
    return replace(
        estimate,
        room=np.where(ruled, np.minimum(estimate.room, all_rows), estimate.room),
        bounded=estimate.bounded & (~ruled | complete),
    )


def _of_enough_rows(
    estimate: Estimate, is_known: NDArray[np.bool_], weights: Weights, promise: Promise
) -> Estimate:
    """Distrust a small sample, which does not know its own spread, and one of no rows."""
    complete = weights.missing <= weights.weight * room_for_all(weights.weight, promise)
    unknown = np.where(is_known, 0.0, np.nan)
    return replace(
        estimate,
        value=estimate.value + unknown,
        low=estimate.low + unknown,
        high=estimate.high + unknown,
        bounded=estimate.bounded & is_known & ((weights.rows >= FEW_ROWS) | complete),
    )


def ruled_by_few(weights: Weights, moments: Moments) -> NDArray[np.bool_]:
    """Tell whether a few large rows rule a sum, so that its interval cannot be trusted."""
    few = np.maximum(_TOP_SHARE, 12 / np.maximum(weights.rows, 1.0))
    return np.asarray(_top_share(weights, moments) > few)


def _top_share(weights: Weights, moments: Moments) -> Floats:
    """Return the part of the largest row in the squares of a sample."""
    squares = _ratio(moments.squares * weights.rows, weights.weight)
    return _ratio(moments.largest**2, squares)


def _student(promise: Promise, weights: Weights, moments: Moments) -> Floats:
    """Return Student's quantile, by its expansion in the degrees of freedom.

    A skewed sample knows its spread less well than its size says: no better than as many rows would
    that are all as large as its largest.
    """
    alike = _ratio(np.ones_like(weights.rows), _top_share(weights, moments))
    freedom = np.maximum(np.minimum(weights.rows - 1, alike), 1.0)
    z = promise.z
    return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)


def _ratio(above: Floats, below: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(below == 0, 0.0, above / np.where(below == 0, 1.0, below))
