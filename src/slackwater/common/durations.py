"""Durations as people and Spark write them: ``150ms``, ``2s``, ``1 minute 30 seconds``."""

import math
import re

from slackwater.core.errors import UsageError

_UNITS_S = {
    ("us", "microsecond"): 1e-6,
    ("ms", "millisecond"): 1e-3,
    ("", "s", "second"): 1.0,
    ("min", "minute"): 60.0,
    ("h", "hour"): 3600.0,
    ("d", "day"): 86400.0,
    ("week",): 7 * 86400.0,
}
_UNIT_S = {
    name: seconds for names, seconds in _UNITS_S.items() for name in (*names, f"{names[-1]}s")
}
_PART = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_duration_s(text: str) -> float:
    """Return the seconds that a text names; a number alone is seconds.

    >>> parse_duration_s("150ms"), parse_duration_s("2"), parse_duration_s("1.5min")
    (0.15, 2.0, 90.0)
    >>> parse_duration_s("2 seconds"), parse_duration_s("interval 1 minute 500 milliseconds")
    (2.0, 60.5)
    >>> parse_duration_s("soon")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: 'soon' is not a duration; write 150ms, 2s or 1.5min
    >>> parse_duration_s("1 000 s")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: '1 000 s' is not a duration; write 150ms, 2s or 1.5min
    """
    rest = text.lower().removeprefix("interval ")
    parts = _PART.findall(rest)
    known = all(unit in _UNIT_S and (unit or len(parts) == 1) for _, unit in parts)
    if not parts or _PART.sub("", rest) or not known:
        raise UsageError(f"'{text}' is not a duration; write 150ms, 2s or 1.5min")
    return sum(float(number) * _UNIT_S[unit] for number, unit in parts)


def as_seconds(what: str, value: object) -> float:
    """Read a positive duration that is stated as seconds or as a text.

    Parameters
    ----------
    what
        That is stated, for the message.

    Examples
    --------
    >>> as_seconds("max_wait", 2), as_seconds("max_wait", "2 seconds")
    (2.0, 2.0)
    >>> as_seconds("max_wait", -1)
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: max_wait must be positive, not -1
    >>> as_seconds("target", [2])
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: target must be seconds or a text such as '2s', not [2]
    """
    if isinstance(value, str):
        try:
            seconds = parse_duration_s(value)
        except UsageError as error:
            raise UsageError(f"{what}: {error}") from None
    elif isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value):
        seconds = float(value)
    else:
        raise UsageError(f"{what} must be seconds or a text such as '2s', not {value!r}")
    if seconds <= 0:
        raise UsageError(f"{what} must be positive, not {value}")
    return seconds
