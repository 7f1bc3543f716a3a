"""Durations as Spark reads them: ``2 seconds``, ``1 minute 500 milliseconds``."""

import re

from slackwater.core.errors import UsageError

_UNITS_S = {
    "microsecond": 1e-6,
    "millisecond": 1e-3,
    "second": 1.0,
    "minute": 60.0,
    "hour": 3600.0,
    "day": 86400.0,
    "week": 7 * 86400.0,
}
_PART = re.compile(rf"([0-9]+(?:\.[0-9]+)?)\s*({'|'.join(_UNITS_S)})s?\b")


def duration_s(what: str, text: str) -> float:
    """Read a duration; ``what`` says whose it is, should it be none.

    >>> duration_s("every", "2 seconds"), duration_s("every", "1 minute 500 milliseconds")
    (2.0, 60.5)
    """
    rest = text.lower().removeprefix("interval ")
    parts = _PART.findall(rest)
    if not parts or _PART.sub("", rest).strip():
        raise UsageError(f"{what} '{text}' is no duration; write '2 seconds', say")
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts)
