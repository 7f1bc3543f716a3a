"""Points of slowly moving clusters, each a function of seed, partition and index."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from slackwater.traffic import BLOCK, block_generator, gather

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

NOISE_SHARE = 0.1  # of the points, which the query leaves out
_SWAY = 3.0  # how far a cluster moves
_EVENTS_PER_TURN = 200_000


class KMeansPoints:
    """Payload generator: points in a plane around centres on a circle.

    >>> points = KMeansPoints(seed=1, clusters=3)
    >>> x, y, valid = points.points(0, np.arange(1000))
    >>> x.shape, bool(0.8 < valid.mean() < 1.0)
    ((1000,), True)
    """

    schema = "x double, y double, valid boolean"
    event_time = "event_time"

    def __init__(self, *, seed: int, clusters: int = 8) -> None:
        self.seed = seed
        angles = 2 * np.pi * np.arange(clusters) / clusters
        self._centres = 20.0 * np.stack([np.cos(angles), np.sin(angles)])

    def points(self, partition: int, index: Ints) -> tuple[Floats, Floats, NDArray[np.bool_]]:
        """Return coordinates, and which points are no noise."""

        def draw(block: int) -> Floats:
            rng = block_generator(self.seed, partition, block, "kmeans")
            return np.concatenate([rng.random((2, BLOCK)), rng.standard_normal((2, BLOCK))])

        which, noise, east, north = gather(index, draw)
        centre = self._centres[:, (which * self._centres.shape[1]).astype(int)]
        turn = 2 * np.pi * index / _EVENTS_PER_TURN
        x = centre[0] + _SWAY * np.cos(turn) + 2 * east
        y = centre[1] + _SWAY * np.sin(turn) + 2 * north
        return x, y, noise >= NOISE_SHARE

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema``."""
        x, y, valid = self.points(partition, index)
        return {"x": pa.array(x), "y": pa.array(y), "valid": pa.array(valid)}
