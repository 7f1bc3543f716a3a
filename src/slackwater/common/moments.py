"""Moments and durations, for people."""

import time


def clock_time(time_s: float) -> str:
    """Return the time of day where we are."""
    return time.strftime("%H:%M:%S", time.localtime(time_s))


def roughly(seconds: float) -> str:
    """Return a duration as exactly as somebody who waits wants it.

    >>> roughly(0.42), roughly(38.4), roughly(150.0), roughly(-1.0)
    ('0.4 s', '38 s', '2.5 min', '0.0 s')
    """
    seconds = max(0.0, seconds)
    if seconds >= 120.0:
        return f"{seconds / 60:.1f} min"
    return f"{seconds:.0f} s" if seconds >= 10.0 else f"{seconds:.1f} s"
