"""Durations as people write them: ``150ms``, ``2s``, ``40us``, ``1.5min``."""

import re

from slackwater.core.errors import UsageError

_UNITS_S = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_DURATION = re.compile(r"\s*([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_duration_s(text: str) -> float:
    """Read seconds from a text such as ``150ms``; a bare number counts seconds.

    >>> parse_duration_s("150ms"), parse_duration_s("2"), parse_duration_s("1.5min")
    (0.15, 2.0, 90.0)
    >>> parse_duration_s("soon")
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: 'soon' is not a duration; write 150ms, 2s or 1.5min
    """
    match = _DURATION.fullmatch(text)
    unit = _UNITS_S.get(match[2].lower() or "s") if match else None
    if match is None or unit is None:
        raise UsageError(f"'{text}' is not a duration; write 150ms, 2s or 1.5min")
    return float(match[1]) * unit
