"""How old the results of a query are, at any time: its newest row that is shown, against now."""

from collections.abc import Sequence

import numpy as np

AGE_STEP_S = 0.05  # how finely it is looked at


def ages_of(shown: Sequence[tuple[float, float]], first_s: float, last_s: float) -> list[float]:
    """Return how old the newest row shown was, at many times of a stretch.

    Parameters
    ----------
    shown
        When a batch was complete, and the newest event of its rows.

    >>> found = ages_of([(11.0, 9.0)], 11.0, 12.0)
    >>> round(found[0], 2), round(found[-1], 2), len(found)
    (2.0, 2.95, 20)
    """
    if not shown:
        return []
    at_s = np.array([done for done, _ in shown])
    newest_s = np.maximum.accumulate([newest for _, newest in shown])
    times = np.arange(first_s, last_s, AGE_STEP_S)
    place = np.searchsorted(at_s, times, side="right") - 1
    seen = place >= 0
    found: list[float] = (times[seen] - newest_s[place[seen]]).tolist()
    return found


def kept_share(ages_s: Sequence[float], target_s: float | None) -> float | None:
    """Return the share of the time in which results were no older than they may be.

    >>> kept_share([1.0, 1.5, 2.5, 1.0], 2.0), kept_share([1.0], None)
    (0.75, None)
    """
    if target_s is None or not ages_s:
        return None
    return round(sum(age_s <= target_s for age_s in ages_s) / len(ages_s), 5)
