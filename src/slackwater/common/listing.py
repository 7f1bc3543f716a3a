"""Names in a row, for people."""

from collections.abc import Sequence

from slackwater.common.plugins import nearest
from slackwater.core.errors import UsageError

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


def unknown_query(name: str, known: Sequence[str]) -> UsageError:
    """Return the error of who asks for a query that there is not.

    >>> str(unknown_query("clikcs", ["ads", "clicks"]))
    "the fleet has no query named 'clikcs'; did you mean 'clicks'?"
    >>> str(unknown_query("nope", []))
    "the fleet has no query named 'nope'; it has none"
    """
    near = nearest(name, known)
    there = f"did you mean {near!r}?" if near else f"it has {names(known) or 'none'}"
    return UsageError(f"the fleet has no query named {name!r}; {there}")
