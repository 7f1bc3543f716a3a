"""One row of the estimators' accuracy."""

from dataclasses import dataclass
from typing import Any, Self

from slackwater.report.reading import entries, mapping, number
from slackwater.statistics.intervals import Interval, binomial_interval


@dataclass(frozen=True, slots=True)
class EstimatorRow:
    """How an estimator did at one confidence under one distribution of delays."""

    estimator: str
    delays: str
    confidence: float  # between 0 and 1
    coverage: Interval | None
    width_s: float | None

    @classmethod
    def read(cls, raw: dict[str, Any]) -> Self | None:
        """Read a row; nothing without a confidence to place it at.

        >>> row = EstimatorRow.read({"estimator": "klink", "confidence": 95, "coverage": 0.9})
        >>> row.confidence, row.coverage.estimate
        (0.95, 0.9)
        """
        confidence = number(raw.get("confidence"))
        if confidence is None:
            return None
        return cls(
            estimator=str(raw.get("estimator", "?")),
            delays=str(raw.get("delays", "")),
            confidence=confidence / 100 if confidence > 1 else confidence,
            coverage=_coverage(raw),
            width_s=number(raw.get("width_s")),
        )


def estimator_rows(result: dict[str, Any]) -> list[EstimatorRow]:
    """The rows of a result.

    >>> estimator_rows({})
    []
    """
    found = map(EstimatorRow.read, entries(mapping(result.get("estimators")).get("rows")))
    return [row for row in found if row is not None]


def _coverage(raw: dict[str, Any]) -> Interval | None:
    coverage, epochs = number(raw.get("coverage")), number(raw.get("epochs"))
    low, high = number(raw.get("coverage_low")), number(raw.get("coverage_high"))
    if coverage is None or not 0 <= coverage <= 1:
        return None
    if low is None or high is None or not low <= coverage <= high:
        _, low, high = binomial_interval(coverage * (epochs or 0), int(epochs or 0))
    return Interval(coverage, low, high)
