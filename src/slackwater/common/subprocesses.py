"""Processes of our own: what they inherit, and how they stay quick to answer."""

import gc
import os
import sys


def child_environment(**more: str) -> dict[str, str]:
    """Return the environment of a Python that imports from where this one does.

    >>> child_environment(SLACKWATER_LOG="json")["SLACKWATER_LOG"]
    'json'
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **more}


def collect_seldom() -> None:
    """Collect garbage seldom, for a process that must answer quickly.

    What is loaded already is left out, and the rest for long: our data has hardly any cycles.
    """
    gc.freeze()
    gc.set_threshold(20_000)
