"""k-means of a weighted sample, and how large the sample must be."""

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri

from slackwater.sampling.needs import LEAST_ROOM, MOST_ROOM
from slackwater.sampling.promise import Promise

Floats = NDArray[np.float64]

_STARTS = 4  # the best of so many beginnings
_ROUNDS = 50
_MORE = 1.3  # rows than the spread of the centres alone asks for: borders move with them
_STILL = 1e-6  # relative improvement below which a round was the last


def kmeans(points: Floats, weights: Floats, number: int) -> Floats:
    """Find centres of ``number`` clusters, one a row, in a fixed order.

    The outcome does not depend on the order of the points.

    >>> points = np.array([[0.0, 0.0], [0.0, 1.0], [9.0, 9.0], [9.0, 8.0]])
    >>> kmeans(points, np.ones(4), 2).tolist()
    [[0.0, 0.5], [9.0, 8.5]]
    """
    if len(points) == 0:
        return points
    order = np.lexsort(points.T[::-1])
    points, weights = points[order], weights[order]
    number = min(number, len(points))
    rng = np.random.default_rng(0)
    found = [
        _descend(points, weights, _begin(points, weights, number, rng)) for _ in range(_STARTS)
    ]
    centres, _ = min(found, key=lambda each: each[1])
    return centres[np.lexsort(centres.T[::-1])]


def inertia(points: Floats, centres: Floats) -> float:
    """Return the sum of the squared distances to the nearest centre."""
    return float(_distances(points, centres).min(axis=1).sum())


def room_for_clusters(number: int, dimensions: int, rows: Floats, promise: Promise) -> Floats:
    """Return the room for clusters whose inertia stays within the promised error of the best.

    Each centre is a mean of its part of the sample, so with n rows the excess is that of a
    chi-square variable with ``number * dimensions`` degrees of freedom, divided by
    ``n * dimensions``; less for a sample that is a large part of all rows.
    """
    freedom = number * dimensions
    needed = _MORE * chdtri(freedom, 1 - promise.confidence) / (dimensions * promise.error)
    return np.asarray(np.clip(rows / needed, LEAST_ROOM, MOST_ROOM))


def _begin(points: Floats, weights: Floats, number: int, rng: np.random.Generator) -> Floats:
    """Choose first centres as k-means++ does: each further one far from those before."""
    chosen = [int(rng.choice(len(points), p=weights / weights.sum()))]
    for _ in range(number - 1):
        far = weights * _distances(points, points[chosen]).min(axis=1)
        total = far.sum()
        chosen.append(int(rng.choice(len(points), p=far / total)) if total > 0 else chosen[-1])
    return points[chosen]


def _descend(points: Floats, weights: Floats, centres: Floats) -> tuple[Floats, float]:
    """Improve centres by Lloyd's algorithm."""
    before = np.inf
    for _ in range(_ROUNDS):
        distances = _distances(points, centres)
        nearest = distances.argmin(axis=1)
        cost = float(weights @ distances[np.arange(len(points)), nearest])
        mass = np.bincount(nearest, weights, len(centres))
        sums = [np.bincount(nearest, weights * axis, len(centres)) for axis in points.T]
        moved = np.stack(sums, axis=1) / np.maximum(mass, 1e-300)[:, None]
        centres = np.where(mass[:, None] > 0, moved, centres)
        if before - cost <= _STILL * cost:
            break
        before = cost
    return centres, cost


def _distances(points: Floats, centres: Floats) -> Floats:
    squares = ((points[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
    return np.asarray(squares)
