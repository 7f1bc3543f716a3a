"""What a micro-batch costs: a fixed part, and one for each row."""

from slackwater.statistics.online import Smoothed

HARDLY_VARY = 0.01  # rows within a tenth of each other: a slope would be noise
FORGET_SHORTEST = 1.01  # how much longer the shortest batch counts after each
FIRST_FIXED = 0.5  # of a batch's time, while nothing tells its fixed part


class BatchCost:
    """Duration of a micro-batch as ``fixed + per_row × rows``: least squares that forgets.

    Neither part is ever negative: when the rows hardly vary, or the slope comes out negative, all
    cost is fixed.

    Parameters
    ----------
    forget
        Weight of what was seen before at each batch; 1: nothing is forgotten.
    cold
        Batches at the beginning that cost up to ten times as much as all others: each counts only
        until there is another.
    hardly_vary
        Part of the rows' mean square that their variance must exceed to tell a slope.

    Examples
    --------
    >>> cost = BatchCost()
    >>> for rows in (0, 1000, 4000):
    ...     cost.update(rows, 0.2 + 0.0001 * rows)
    >>> round(cost.fixed_s, 3), round(cost.per_row_s, 6)
    (0.2, 0.0001)
    """

    def __init__(
        self, forget: float = 0.95, cold: int = 0, hardly_vary: float = HARDLY_VARY
    ) -> None:
        self.forget = forget
        self._hardly_vary = hardly_vary
        self._cold = cold
        self._batches = 0
        self._clear()

    def _clear(self) -> None:
        self._weight = self._rows = self._time = self._rows_rows = self._rows_time = 0.0

    def update(self, rows: float, seconds: float) -> None:
        """Take a batch."""
        self._batches += 1
        if self._batches <= 1 + self._cold:
            self._clear()
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
        if spread <= self._hardly_vary * self._rows_rows:
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


class SteeredBatchCost:
    """The same where rows are dropped so that batches take a certain time.

    Such batches show no slope, and all cost would seem to be fixed. So the cost of a row is
    remembered from when sizes varied, and no fixed part is longer than the shortest batch was.

    Parameters
    ----------
    forget
        As in :class:`BatchCost`.
    weight
        Of the newest batch in what is smoothed.

    Examples
    --------
    >>> cost = SteeredBatchCost()
    >>> for rows in (1000, 4000, 2000, 2000, 2000):
    ...     cost.update(rows, 0.2 + 0.0001 * rows)
    >>> round(cost.fixed_s, 2), round(cost.per_row_s, 5), cost.rows_in(0.5)
    (0.16, 0.00012, 2795)
    """

    def __init__(self, forget: float = 0.97, weight: float = 0.2) -> None:
        self._cost = BatchCost(forget)
        self._per_row = Smoothed(weight)
        self._duration = Smoothed(weight)
        self._rows = Smoothed(weight)
        self._shortest_s = float("inf")  # what was long ago counts less and less

    def update(self, rows: int, seconds: float) -> None:
        """Take a batch that had rows."""
        self._cost.update(rows, seconds)
        duration_s, mean_rows = self._duration.update(seconds), self._rows.update(rows)
        per_row_s = self._cost.per_row_s
        if not per_row_s:  # sizes that hardly vary tell nothing of the fixed part
            fixed_s = FIRST_FIXED * duration_s
            known = self._per_row.value
            per_row_s = known if known is not None else max(duration_s - fixed_s, 0.0) / mean_rows
        self._shortest_s = min(seconds, FORGET_SHORTEST * self._shortest_s)
        self._per_row.update(max(per_row_s, (duration_s - self._shortest_s) / mean_rows))

    @property
    def duration_s(self) -> float | None:
        """Mean duration of the last batches."""
        return self._duration.value

    @property
    def per_row_s(self) -> float | None:
        return self._per_row.value

    @property
    def fixed_s(self) -> float | None:
        if self._per_row.value is None or self._duration.value is None or self._rows.value is None:
            return None
        return max(self._duration.value - self._per_row.value * self._rows.value, 0.0)

    def rows_in(self, seconds: float) -> int | None:
        """Return how many rows fit into a batch of this length; ``None`` while not known."""
        fixed_s = self.fixed_s
        if not self._per_row.value or fixed_s is None:
            return None
        return int((seconds - fixed_s) / self._per_row.value)
