"""Garbage collection for a process that must answer quickly."""

import gc


def collect_seldom() -> None:
    """Leave out what is loaded already, and the rest for long: our data has hardly any cycles."""
    gc.freeze()
    gc.set_threshold(20_000)
