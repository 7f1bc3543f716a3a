"""Does holding do harm? If the machine idles while due work waits, slots are the wrong number."""

import logging
from collections.abc import Callable

from slackwater.core.model import Snapshot

log = logging.getLogger("slackwater.controller")

LOOK_S = 0.5  # between two looks
IDLE = 0.7  # of all cores: less is used, and there was room for one more
FULL = 0.9  # more is used, and what was given is taken back
GIVE_AFTER = 2  # looks in a row
TAKE_AFTER = 20
OPEN_AFTER = 10  # looks in a row with all that may be given given
OPEN_S = 30.0  # so long nobody is held; then it is tried again
MOST = 3  # times the slots that there are


class Guard:
    """Gives slots while due work waits beside idle cores; if that does not help, holds nobody.

    Parameters
    ----------
    cores
        That this process may run on.
    machine_s
        Returns the CPU time that was used on them so far, whoever used it.

    Examples
    --------
    >>> used = iter(range(100))
    >>> guard = Guard(cores=4, machine_s=lambda: 0.1 * next(used))
    >>> full = Snapshot(0.0, slots=2)
    >>> for look in range(4):
    ...     guard.look(look / 2, full, held_up=3, free=0)
    >>> guard.extra
    1
    """

    def __init__(self, cores: int, machine_s: Callable[[], float]) -> None:
        self._cores = cores
        self._machine_s = machine_s
        self._looked: tuple[float, float] | None = None  # when, and the CPU time until then
        self._idle = self._calm = self._helpless = 0  # looks in a row
        self._open_until_s = 0.0
        self.extra = 0  # slots given beside those that there are

    def is_open(self, now_s: float) -> bool:
        """Tell whether nobody is to be held; a clock that was put back must not make it long."""
        return 0.0 < self._open_until_s - now_s <= OPEN_S

    def due(self, now_s: float) -> bool:
        """Tell whether it is time for a look."""
        return self._looked is None or not 0.0 <= now_s - self._looked[0] < LOOK_S

    def look(
        self, now_s: float, snapshot: Snapshot, held_up: int, free: int, cores: int | None = None
    ) -> None:
        """Look whether cores idle while work waits.

        Parameters
        ----------
        held_up, free
            How many queries could go, and how many slots are free, those given included.
        cores
            That Spark's tasks have, if that is fewer than there are: others are not for it to use.
        """
        try:
            used_s = self._machine_s()
        except (OSError, ValueError):  # nobody can tell here, so nothing is given
            return
        before, self._looked = self._looked, (now_s, used_s)
        if before is None or now_s <= before[0]:
            return
        busy = (used_s - before[1]) / (now_s - before[0]) / min(self._cores, cores or self._cores)
        harm = held_up > 0 and free == 0 and busy < IDLE
        self._idle = self._idle + 1 if harm else 0
        self._calm = 0 if harm or (busy < FULL and held_up) else self._calm + 1
        most = (MOST - 1) * snapshot.slots
        if self._idle >= GIVE_AFTER and self.extra < most:
            self.extra, self._idle = self.extra + 1, 0
            log.info("cores idle while %d queries wait: %d more slots", held_up, self.extra)
        elif self.extra and self._calm >= TAKE_AFTER:
            self.extra, self._calm = self.extra - 1, 0
        self._helpless = self._helpless + 1 if harm and self.extra >= most else 0
        if self._helpless >= OPEN_AFTER:
            self._helpless, self._open_until_s = 0, now_s + OPEN_S
            log.warning("cores idle while queries wait: nobody is held for %.0f s", OPEN_S)
