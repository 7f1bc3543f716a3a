"""Processes of our own."""

import os
import sys


def child_environment(**more: str) -> dict[str, str]:
    """Of a Python that imports from where this one does.

    >>> child_environment(SLACKWATER_LOG="json")["SLACKWATER_LOG"]
    'json'
    """
    return {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **more}
