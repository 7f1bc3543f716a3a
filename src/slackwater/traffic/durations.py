"""Durations as people write them: ``150ms``, ``2s``, ``40us``, ``1.5min``, ``2 seconds``."""

import math
import re

from slackwater.core.errors import UsageError

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_LONG = {"microsecond": "us", "millisecond": "ms", "second": "s", "minute": "min", "hour": "h"}
_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_duration_s(text: str) -> float:
    """Read seconds from a text such as ``150ms``; a bare number counts seconds.

    >>> parse_duration_s("150ms"), parse_duration_s("2"), parse_duration_s("1.5min")
    (0.15, 2.0, 90.0)
    >>> parse_duration_s("2 seconds"), parse_duration_s("1 hour")
    (2.0, 3600.0)
    >>> parse_duration_s("soon")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: 'soon' is not a duration; write 150ms, 2s or 1.5min
    """
    match = _DURATION.fullmatch(text)
    name = match[2].lower() if match else ""
    unit = _UNITS_S.get(_LONG.get(name.removesuffix("s"), name or "s"))
    if match is None or unit is None:
        raise UsageError(f"'{text}' is not a duration; write 150ms, 2s or 1.5min")
    return float(match[1]) * unit


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
