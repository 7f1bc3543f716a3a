"""Running statistics that forget: what was seen lately counts more than what was seen once."""

from math import sqrt


class Smoothed:
    """Exponentially weighted mean.

    >>> rate = Smoothed(0.5)
    >>> rate.update(10.0), rate.update(20.0)
    (10.0, 15.0)
    """

    def __init__(self, weight: float = 0.2) -> None:
        self.weight = weight  # of the newest observation
        self.value: float | None = None

    def update(self, observed: float) -> float:
        if self.value is None:
            self.value = observed
        else:
            self.value = (1 - self.weight) * self.value + self.weight * observed
        return self.value


class Moments:
    """Mean and standard deviation of the last ~1/weight observations.

    >>> lag = Moments(0.5)
    >>> lag.update(1.0); lag.update(1.0)
    >>> lag.mean, lag.std
    (1.0, 0.0)
    """

    def __init__(self, weight: float = 0.05) -> None:
        self.weight = weight
        self.count = 0
        self._mean = 0.0
        self._variance = 0.0

    def update(self, observed: float) -> None:
        self.count += 1
        # Plain averaging until enough was seen, so that the first value is not over-weighted.
        weight = max(self.weight, 1.0 / self.count)
        change = observed - self._mean
        self._mean += weight * change
        self._variance = (1 - weight) * (self._variance + weight * change * change)

    @property
    def mean(self) -> float | None:
        return self._mean if self.count else None

    @property
    def std(self) -> float | None:
        return sqrt(self._variance) if self.count > 1 else None
