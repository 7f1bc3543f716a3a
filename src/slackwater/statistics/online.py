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
            self.value += self.weight * (observed - self.value)
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


HARDLY_VARY = 0.01  # rows within a tenth of each other: a slope would be noise


class BatchCost:
    """Duration of a micro-batch as ``fixed + per_row × rows``: least squares that forgets.

    Neither part is ever negative: when the rows hardly vary, or the slope comes out negative, all
    cost is fixed.

    >>> cost = BatchCost()
    >>> for rows in (0, 1000, 4000):
    ...     cost.update(rows, 0.2 + 0.0001 * rows)
    >>> round(cost.fixed_s, 3), round(cost.per_row_s, 6)
    (0.2, 0.0001)
    """

    def __init__(self, forget: float = 0.95) -> None:
        self.forget = forget
        self._weight = self._rows = self._time = self._rows_rows = self._rows_time = 0.0

    def update(self, rows: float, seconds: float) -> None:
        self._weight = self.forget * self._weight + 1.0
        self._rows = self.forget * self._rows + rows
        self._time = self.forget * self._time + seconds
        self._rows_rows = self.forget * self._rows_rows + rows * rows
        self._rows_time = self.forget * self._rows_time + rows * seconds

    @property
    def per_row_s(self) -> float | None:
        if self._weight == 0.0:
            return None
        spread = self._rows_rows - self._rows * self._rows / self._weight
        if spread <= HARDLY_VARY * self._rows_rows:
            return 0.0
        slope = (self._rows_time - self._rows * self._time / self._weight) / spread
        # A slope that would make the fixed part negative is capped by a line through the origin.
        return min(max(0.0, slope), self._time / self._rows if self._rows else 0.0)

    @property
    def fixed_s(self) -> float | None:
        slope = self.per_row_s
        if slope is None:
            return None
        return max(0.0, (self._time - slope * self._rows) / self._weight)
