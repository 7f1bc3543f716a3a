"""Aggregates that a sample can answer, as users write them: ``mean(distance)``."""

import re
from dataclasses import dataclass

from slackwater.core.errors import UsageError

# What each takes: columns, then numbers.
_KINDS = {"count": (0, 0), "sum": (1, 0), "mean": (1, 0), "ratio": (2, 0), "quantile": (1, 1)}
_SAME = {"avg": "mean", "percentile": "quantile"}
_EXACT_ONLY = ("min", "max", "first", "last", "count_distinct", "collect_list", "collect_set")
_FORM = re.compile(r"\s*(\w+)\s*\(\s*([^()]*?)\s*\)\s*")
USAGE = "count(), sum(column), mean(column), ratio(column, column), quantile(column, 0.95)"


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a result.

    >>> Aggregate.parse("p95", "quantile(distance, 0.95)")
    Aggregate(name='p95', kind='quantile', columns=('distance',), level=0.95)
    >>> Aggregate.parse("most", "max(fare)")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: most: no error bound holds for max(fare) from a sample; \
compute it exactly with groupBy(...).agg(...), or use one of count(), sum(column), mean(column), \
ratio(column, column), quantile(column, 0.95)
    """

    name: str  # of the column in the result
    kind: str
    columns: tuple[str, ...] = ()
    level: float | None = None  # of a quantile

    @classmethod
    def parse(cls, name: str, text: str) -> "Aggregate":
        """From its text."""
        form = _FORM.fullmatch(text)
        kind = form[1].lower() if form else ""
        kind = _SAME.get(kind, kind)
        if kind in _EXACT_ONLY:
            raise UsageError(
                f"{name}: no error bound holds for {text} from a sample; compute it exactly with "
                f"groupBy(...).agg(...), or use one of {USAGE}"
            )
        if form is None or kind not in _KINDS:
            raise UsageError(f"{name}: {text!r} is no aggregate; use one of {USAGE}")
        parts = [part.strip() for part in form[2].split(",") if part.strip()]
        columns, numbers = _KINDS[kind]
        if len(parts) != columns + numbers:
            raise UsageError(f"{name}: {text!r} has {len(parts)} arguments; use one of {USAGE}")
        level = _level(name, parts[-1]) if numbers else None
        return cls(name, kind, tuple(parts[:columns]), level)


def _level(name: str, text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = -1.0
    if not 0 < level < 1:
        raise UsageError(f"{name}: a quantile's level lies between 0 and 1, not {text}")
    return level
