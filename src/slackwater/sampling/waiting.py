"""The least wait that will do."""

from collections.abc import Callable

_STEP_S = 0.005  # no finer than the clock of a micro-batch


def least_wait_s(enough: Callable[[float], bool], most_s: float) -> float:
    """Return the shortest wait for which ``enough`` holds; ``most_s`` if none does.

    >>> round(least_wait_s(lambda wait_s: wait_s >= 0.3, 2.0), 2)
    0.3
    """
    if enough(0.0):
        return 0.0
    low_s, high_s = 0.0, most_s
    while high_s - low_s > _STEP_S:
        middle_s = (low_s + high_s) / 2
        low_s, high_s = (low_s, middle_s) if enough(middle_s) else (middle_s, high_s)
    return high_s
