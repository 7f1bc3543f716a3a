"""Figures of a set of measurements."""

from collections.abc import Sequence

import numpy as np


def summary(values: Sequence[float]) -> dict[str, float | None]:
    """Mean and quantiles, as in every report.

    >>> summary([1.0, 2.0, 3.0])["mean"]
    2.0
    >>> summary([])["p99"] is None
    True
    """
    if not values:
        return dict.fromkeys(("mean", "p50", "p90", "p99", "max"))
    array = np.asarray(values)
    p50, p90, p99 = np.quantile(array, (0.5, 0.9, 0.99))
    figures = {"mean": array.mean(), "p50": p50, "p90": p90, "p99": p99, "max": array.max()}
    return {name: round(float(value), 4) for name, value in figures.items()}
