"""Where a new instance goes: to the worker with the most free CPU."""

from collections.abc import Collection
from random import Random

from slackwater.quality.cost import UNKNOWN_CPU
from slackwater.quality.graph import Floats


def place(
    free: Floats,
    chance: Random,
    *,
    needed: float = UNKNOWN_CPU,
    preferred: Collection[int] = (),
    barred: Collection[int] = (),
) -> int | None:
    """Choose a worker, by number; ``None`` where there is none that may be chosen.

    Parameters
    ----------
    free
        By worker: cores that nobody uses, other processes of the machine counted.
    chance
        Decides between equals.
    needed
        Cores that the instance needs; a core while nothing is known of it.
    preferred
        Workers that it should be on, as long as it fits there.
    barred
        Workers that it must not go to: where it was moved away from.

    Examples
    --------
    >>> import numpy as np
    >>> free = np.array([0.5, 1.5, 3.0])
    >>> place(free, Random(1)), place(free, Random(1), preferred=[1])
    (2, 1)
    >>> place(free, Random(1), preferred=[0]), place(free, Random(1), barred=[2])
    (2, 1)
    """
    allowed = [worker for worker in range(len(free)) if worker not in barred]
    fitting = [w for w in preferred if w in allowed and free[w] >= needed]
    candidates = fitting or allowed
    if not candidates:
        return None
    most = max(free[worker] for worker in candidates)
    return chance.choice([worker for worker in candidates if free[worker] >= most])
