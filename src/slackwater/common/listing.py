"""Names in a row, for people."""

from collections.abc import Sequence

MOST_NAMES = 6  # the rest is counted


def names(queries: Sequence[str]) -> str:
    """List the first few, and say how many more there are.

    >>> names(["a", "b"])
    'a, b'
    >>> names([f"q{n}" for n in range(9)])
    'q0, q1, q2, q3, q4, q5 and 3 more'
    """
    shown = ", ".join(queries[:MOST_NAMES])
    more = len(queries) - MOST_NAMES
    return f"{shown} and {more} more" if more > 0 else shown
