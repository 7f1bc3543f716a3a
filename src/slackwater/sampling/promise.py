"""What a user asks of an approximate result."""

from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist

from slackwater.core.errors import UsageError


@dataclass(frozen=True)
class Promise:
    """``P(relative error <= error) >= confidence``, for each row of a result.

    >>> round(Promise(error=0.05, confidence=0.95).z, 2)
    1.96
    >>> Promise(error=0.0)
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: error must lie between 0 and 1, not 0.0
    """

    error: float = 0.05
    confidence: float = 0.95  # 1 - delta: delta is the probability of a larger error

    def __post_init__(self) -> None:
        for name in ("error", "confidence"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise UsageError(f"{name} must lie between 0 and 1, not {value}")

    def shared_by(self, number: int) -> "Promise":
        """Return what each of several results must promise to keep it together (Bonferroni).

        >>> round(Promise(confidence=0.9).shared_by(2).confidence, 3)
        0.95
        """
        return Promise(self.error, 1 - (1 - self.confidence) / number)

    @cached_property
    def z(self) -> float:
        """How many standard deviations lie within."""
        return NormalDist().inv_cdf((1 + self.confidence) / 2)
