"""Sampling rates of sub-streams, such that all contribute alike."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def needed_room(shares: Floats) -> float:
    """Return the room that late rows alone use up, when every row that arrives is kept."""
    return float(np.mean(1 / np.maximum(shares, 1e-9) - 1))


def substream_rates(shares: Floats, room: float) -> Floats:
    """Return rates that use up the room, when ``shares`` of the sub-streams arrive in time.

    Each sub-stream is to have the same part of its rows in the sample; where too few arrive for
    that, all of them are taken, and the others make up for it. (The published rate,
    n / N_ddl, with the number that arrives by the deadline in place of E[f - D] / E[G].)

    >>> substream_rates(np.array([0.5, 1.0]), room=3.0).round(2).tolist()
    [0.5, 0.25]
    >>> substream_rates(np.array([0.5, 1.0]), room=0.6).round(2).tolist()
    [1.0, 0.83]
    """
    if needed_room(shares) >= room:
        return np.ones_like(shares)
    low, high = 0.0, 1.0  # part of its rows that each is to have
    for _ in range(50):
        middle = (low + high) / 2
        if needed_room(np.minimum(middle, shares)) > room:
            low = middle
        else:
            high = middle
    return np.minimum(1.0, high / shares)
