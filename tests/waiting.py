"""Waiting with a limit, never for luck."""

import time
from collections.abc import Callable


def eventually(holds: Callable[[], bool], limit_s: float = 30.0, pause_s: float = 0.02) -> None:
    """Poll until ``holds()``; fail after ``limit_s``."""
    until_s = time.monotonic() + limit_s
    while not holds():
        assert time.monotonic() < until_s, f"did not happen within {limit_s} s: {holds}"
        time.sleep(pause_s)
