"""Aggregates that a sample can answer, as users write them: ``mean(distance)``."""

import re
from dataclasses import dataclass

from slackwater.core.errors import UsageError

# What each takes: columns, then numbers; clusters have as many columns as dimensions.
_KINDS = {"count": (0, 0), "sum": (1, 0), "mean": (1, 0), "ratio": (2, 0), "quantile": (1, 1)}
CLUSTERS = "kmeans"
_SAME = {"avg": "mean", "percentile": "quantile"}
_EXACT_ONLY = ("min", "max", "first", "last", "count_distinct", "collect_list", "collect_set")
_FORM = re.compile(r"\s*(\w+)\s*\(\s*([^()]*?)\s*\)\s*")
USAGE = (
    "count(), sum(column), mean(column), ratio(column, column), quantile(column, 0.95), "
    "kmeans(column, column, 8)"
)


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a result.

    >>> Aggregate.parse("p95", "quantile(distance, 0.95)")
    Aggregate(name='p95', kind='quantile', columns=('distance',), number=0.95)
    >>> Aggregate.parse("most", "max(fare)")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: most: no error bound holds for max(fare) from a sample; \
compute it exactly with groupBy(...).agg(...), or use one of count(), sum(column), mean(column), \
ratio(column, column), quantile(column, 0.95), kmeans(column, column, 8)
    """

    name: str  # of the column in the result
    kind: str
    columns: tuple[str, ...] = ()
    number: float | None = None  # level of a quantile, number of clusters

    @classmethod
    def parse(cls, name: str, text: str) -> "Aggregate":
        """Read one from its text."""
        form = _FORM.fullmatch(text)
        kind = form[1].lower() if form else ""
        kind = _SAME.get(kind, kind)
        if kind in _EXACT_ONLY:
            raise UsageError(
                f"{name}: no error bound holds for {text} from a sample; compute it exactly with "
                f"groupBy(...).agg(...), or use one of {USAGE}"
            )
        if form is None or kind not in (*_KINDS, CLUSTERS):
            raise UsageError(f"{name}: {text!r} is no aggregate; use one of {USAGE}")
        parts = [part.strip() for part in form[2].split(",") if part.strip()]
        if kind == CLUSTERS and len(parts) >= 2:
            return cls(name, kind, tuple(parts[:-1]), _clusters(name, parts[-1]))
        columns, numbers = _KINDS.get(kind, (1, 1))
        if len(parts) != columns + numbers:
            raise UsageError(f"{name}: {text!r} has {len(parts)} arguments; use one of {USAGE}")
        level = _level(name, parts[-1]) if numbers else None
        return cls(name, kind, tuple(parts[:columns]), level)


def _clusters(name: str, text: str) -> float:
    if not text.isdigit() or int(text) < 1:
        raise UsageError(f"{name}: a number of clusters is a whole number from 1 on, not {text}")
    return float(text)


def _level(name: str, text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = -1.0
    if not 0 < level < 1:
        raise UsageError(f"{name}: a quantile's level lies between 0 and 1, not {text}")
    return level
