"""Shed rates: with which probability rows are kept, and how to come to a wanted accuracy."""

from dataclasses import dataclass

from slackwater.core.errors import UsageError


@dataclass(frozen=True)
class KeepRates:
    """Probabilities of keeping rows that a predicate spares, and others; without one all are."""

    spared: float = 1.0
    others: float = 1.0

    @classmethod
    def of_numbers(cls, numbers: object) -> "KeepRates":
        """Read them from JSON; whatever is no pair of probabilities sheds nothing.

        >>> KeepRates.of_numbers([1.0, 0.5]), KeepRates.of_numbers([1, 7])
        (KeepRates(spared=1.0, others=0.5), KeepRates(spared=1.0, others=1.0))
        """
        if not isinstance(numbers, list | tuple) or len(numbers) != 2:
            return EVERYTHING
        if not all(isinstance(each, int | float) and 0 <= each <= 1 for each in numbers):
            return EVERYTHING
        return cls(float(numbers[0]), float(numbers[1]))

    @property
    def numbers(self) -> list[float]:
        return [self.spared, self.others]

    @property
    def sheds(self) -> bool:
        return self.spared < 1 or self.others < 1


EVERYTHING = KeepRates()


def rates_for(accuracy: float, spared_share: float) -> KeepRates:
    """Return rates that keep ``accuracy`` of all rows, and spared ones as long as it goes.

    Parameters
    ----------
    spared_share
        Part of all rows that the predicate spares.

    Examples
    --------
    >>> rates_for(0.5, 0.0), round(rates_for(0.6, 0.2).others, 3)
    (KeepRates(spared=1.0, others=0.5), 0.5)
    >>> rates_for(0.1, 0.2)
    KeepRates(spared=0.5, others=0.0)
    """
    accuracy = min(max(accuracy, 0.0), 1.0)
    if accuracy < spared_share:
        return KeepRates(accuracy / spared_share, 0.0)
    if spared_share >= 1:
        return KeepRates(accuracy, 1.0)
    return KeepRates(1.0, (accuracy - spared_share) / (1 - spared_share))


def spared_share(rates: KeepRates, delivered: float) -> float | None:
    """Return which part of all rows is spared, by what came through; ``None``: not known.

    >>> round(spared_share(KeepRates(1.0, 0.375), 0.5), 3)
    0.2
    """
    between = rates.spared - rates.others
    if abs(between) < 0.02:
        return None
    return min(max((delivered - rates.others) / between, 0.0), 1.0)


@dataclass(frozen=True)
class ShedPlan:
    """What a source is told; how much a micro-batch keeps depends also on how much there is.

    A micro-batch has at most ``rows`` rows: more of them are dropped down to the minimum, and what
    is still too much is left for the next. So a burst costs accuracy at once, and not lag until
    a controller has seen it.
    """

    accuracy: float = 1.0  # part of all rows that is kept
    share: float = 0.0  # part of all rows that is spared
    rows: int | None = None  # most rows that a micro-batch keeps; None: no limit
    least: float = 0.0  # accuracy below which the limit drops no more

    def __post_init__(self) -> None:
        if not 0 <= self.accuracy <= 1 or not 0 <= self.share <= 1 or not 0 <= self.least <= 1:
            raise UsageError("a shed plan has accuracies between 0 and 1")
        if self.rows is not None and self.rows < 1:
            raise UsageError(f"a micro-batch keeps at least 1 row, not {self.rows}")

    def most(self, waiting: int) -> int:
        """Return how many of the rows that wait the micro-batch reads.

        >>> ShedPlan(rows=100, least=0.1).most(5000)
        1000
        """
        if self.rows is None or self.least <= 0 or waiting * self.least <= self.rows:
            return waiting
        return max(1, int(self.rows / self.least))

    def rates(self, read: int) -> KeepRates:
        """Return the rates of a micro-batch that reads so many.

        >>> ShedPlan(accuracy=0.9, rows=100).rates(1000)
        KeepRates(spared=1.0, others=0.1)
        """
        accuracy = self.accuracy
        if self.rows is not None and read * accuracy > self.rows:
            accuracy = max(self.rows / read, min(self.least, accuracy))
        return rates_for(accuracy, self.share)


NO_SHEDDING = ShedPlan()
