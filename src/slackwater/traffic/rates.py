"""Events per second over time, with the count so far and its inverse.

A rate is a step function from time zero on; it goes on with its last step for ever, or repeats
with a period. The count ``N(t)`` is then piecewise linear and can be inverted exactly.
"""

import csv
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from slackwater.common.durations import parse_duration_s
from slackwater.core.errors import UsageError

VALID_FORMS = (
    "1000, constant:1000, steps:0=1000,10=5000, burst:1000:5000:every=10:for=2, trace:FILE.csv"
)


@dataclass(frozen=True)
class Rate:
    """Steps of constant rate.

    >>> rate = Rate(starts_s=(0.0, 10.0), per_second=(100.0, 500.0))
    >>> rate.count([5.0, 10.0, 11.0]).tolist()
    [500.0, 1000.0, 1500.0]
    >>> rate.inverse([500, 1500]).tolist()
    [5.0, 11.0]
    """

    starts_s: tuple[float, ...]  # begin of each step, ascending, the first at zero
    per_second: tuple[float, ...]  # events per second in each step
    period_s: float | None = None  # repeats after this time; None: the last step lasts for ever

    def __post_init__(self) -> None:
        starts = self.starts_s
        if not starts or starts[0] != 0 or any(b <= a for a, b in pairwise(starts)):
            raise UsageError("the steps of a rate must start at 0 s and ascend")
        if not all(0 <= r < math.inf for r in self.per_second) or not any(self.per_second):
            raise UsageError("a rate must not be negative and not zero throughout")
        if self.period_s is not None and self.period_s <= starts[-1]:
            raise UsageError("a rate's period must be longer than its steps")

    def at(self, time_s: ArrayLike) -> NDArray[np.float64]:
        """Return events per second at given times."""
        _, inside = self._fold(np.asarray(time_s, dtype=np.float64))
        return self._rates[self._step_of(inside, self._starts)]

    def count(self, time_s: ArrayLike) -> NDArray[np.float64]:
        """Return ``N(t)``: events due up to given times; zero before time zero."""
        times = np.maximum(np.asarray(time_s, dtype=np.float64), 0.0)
        if self._is_steady:
            return times * self.per_second[0]
        periods, inside = self._fold(times)
        step = self._step_of(inside, self._starts)
        counted = self._counts[step] + (inside - self._starts[step]) * self._rates[step]
        return periods * self._per_period + counted

    def inverse(self, number: ArrayLike) -> NDArray[np.float64]:
        """Return the last time at which ``N(t)`` is at most given numbers; infinite if it stays so.

        Event number ``n`` (from zero) happens there: where the rate is zero, at the end of the
        pause.
        """
        numbers = np.asarray(number, dtype=np.float64)
        if self._is_steady:
            return numbers / self.per_second[0]
        periods = np.zeros_like(numbers)
        if self.period_s is not None:
            periods = np.floor(numbers / self._per_period)
            numbers = numbers - periods * self._per_period
        step = self._step_of(numbers, self._counts)
        rates = self._rates[step]
        with np.errstate(divide="ignore", invalid="ignore"):
            ahead = np.where(rates > 0, (numbers - self._counts[step]) / rates, math.inf)
        return periods * (self.period_s or 0.0) + self._starts[step] + ahead

    def text(self) -> str:
        """Return a text that ``parse_rate`` reads back, with a trace file's content written out."""
        steps = ",".join(
            f"{s!r}={r!r}" for s, r in zip(self.starts_s, self.per_second, strict=True)
        )
        return f"steps:{steps}" + ("" if self.period_s is None else f":every={self.period_s!r}")

    def _fold(self, times: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        if self.period_s is None:
            return np.zeros_like(times), times
        periods = np.floor(times / self.period_s)
        return periods, times - periods * self.period_s

    @staticmethod
    def _step_of(values: NDArray[np.float64], begins: NDArray[np.float64]) -> NDArray[np.intp]:
        # Right: where two begins are equal (a pause in the count) the later step is meant.
        return np.maximum(np.searchsorted(begins, values, side="right") - 1, 0)

    @cached_property
    def _is_steady(self) -> bool:
        """Tell whether there is one step: simulations ask such rates millions of times."""
        return len(self.starts_s) == 1 and self.period_s is None

    @cached_property
    def _starts(self) -> NDArray[np.float64]:
        return np.asarray(self.starts_s)

    @cached_property
    def _rates(self) -> NDArray[np.float64]:
        return np.asarray(self.per_second)

    @cached_property
    def _counts(self) -> NDArray[np.float64]:
        lengths = np.diff(self._starts)
        return np.concatenate([[0.0], np.cumsum(lengths * self._rates[:-1])])

    @cached_property
    def _per_period(self) -> float:
        if self.period_s is None:
            return 0.0
        return float(self._counts[-1] + (self.period_s - self._starts[-1]) * self._rates[-1])


def parse_rate(text: str) -> Rate:
    """Read the rate that a short text names.

    >>> parse_rate("1000")
    Rate(starts_s=(0.0,), per_second=(1000.0,), period_s=None)
    >>> parse_rate("burst:1000:5000:every=10:for=2")
    Rate(starts_s=(0.0, 8.0), per_second=(1000.0, 5000.0), period_s=10.0)
    >>> parse_rate("fast")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: 'fast' names no rate; valid forms: 1000, constant:1000, \
steps:0=1000,10=5000, burst:1000:5000:every=10:for=2, trace:FILE.csv
    """
    kind, _, rest = text.strip().partition(":")
    try:
        if kind == "trace":
            return _trace(rest)
        build = _BUILDERS.get(kind)
        return build(*rest.split(":")) if build else _constant(text)
    except (TypeError, ValueError):
        raise UsageError(f"'{text}' names no rate; valid forms: {VALID_FORMS}") from None


def _constant(per_second: str) -> Rate:
    return Rate((0.0,), (float(per_second),))


def _steps(steps: str, every: str | None = None) -> Rate:
    pairs = [step.split("=") for step in steps.split(",")]
    period_s = None if every is None else parse_duration_s(_named("every", every))
    return Rate(
        tuple(parse_duration_s(start) for start, _ in pairs),
        tuple(float(rate) for _, rate in pairs),
        period_s,
    )


def _burst(base: str, peak: str, every: str, lasting: str) -> Rate:
    """Make a peak in the last seconds of every period, so that a run starts in calm."""
    period_s = parse_duration_s(_named("every", every))
    burst_s = parse_duration_s(_named("for", lasting))
    return Rate((0.0, period_s - burst_s), (float(base), float(peak)), period_s)


def _trace(path: str) -> Rate:
    """Read steps from a CSV file of seconds and rate; a heading line is skipped."""
    try:
        with Path(path).open(newline="") as file:
            rows = [row for row in csv.reader(file) if row]
    except OSError as error:
        raise UsageError(f"cannot read the rate trace '{path}': {error.strerror}") from None
    if rows and not _is_number(rows[0][0]):
        rows = rows[1:]
    if not rows:
        raise UsageError(f"the rate trace '{path}' has no rows; write lines of seconds,rate")
    return _from_rows(path, rows)


def _from_rows(path: str, rows: Sequence[Sequence[str]]) -> Rate:
    try:
        return Rate(tuple(float(r[0]) for r in rows), tuple(float(r[1]) for r in rows))
    except (IndexError, ValueError):
        raise UsageError(f"the rate trace '{path}' must have lines of seconds,rate") from None


def _named(name: str, text: str) -> str:
    key, _, value = text.partition("=")
    if key != name:
        raise ValueError(name)
    return value


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


_BUILDERS: dict[str, Callable[..., Rate]] = {
    "constant": _constant,
    "steps": _steps,
    "burst": _burst,
}
