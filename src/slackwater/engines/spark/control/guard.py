"""Does holding do harm? Then more slots are given; who is harmed all the same is not held."""

import logging
import math
from collections import deque
from collections.abc import Callable, Mapping

from slackwater.common.moments import clock_time
from slackwater.core.model import Snapshot

log = logging.getLogger("slackwater.controller")

LOOK_S = 0.5  # between two looks
IDLE = 0.7  # of all cores: less is used, and there was room for one more
FULL = 0.9  # more is used, and what was given is taken back
GIVE_AFTER = 2  # looks in a row
TAKE_AFTER = 20
OPEN_AFTER = 10  # looks in a row with all that may be given given
OPEN_S = 30.0  # so long nobody is held, or one query is not; then it is tried again
MOST = 3  # times the slots that there are
PLAIN_ROUNDS = 1.1  # of all queries through all slots: plain Spark makes nobody wait longer
LATELY_S = 600.0  # longer ago it does not count that a gate has opened by itself
LEAST_ROUND_S = 2.0  # shorter ones are not told from noise
WRONGED = 3  # waits in a row of one query that were longer, or times that its gate gave up


class Guard:
    """Gives slots while due work waits beside idle cores; if that does not help, holds nobody.

    A query that waits longer than plain Spark would make it wait, again and again, is let through
    for a while, unless others are more important; and so is one whose gate has opened by itself
    again and again.

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
    ...     guard.look(look / 2, full, held_up={"q": 0.0}, free=0)
    >>> guard.extra
    1
    """

    def __init__(self, cores: int, machine_s: Callable[[], float]) -> None:
        self._cores = cores
        self._machine_s = machine_s
        self._looked: tuple[float, float] | None = None  # when, and the CPU time until then
        self._idle = self._calm = self._helpless = 0  # looks in a row
        self._open_until_s = 0.0
        # Of each query the last wait that was too long, by its admissions, and how many in a row.
        self._waits: dict[str, tuple[int, int]] = {}
        self._opened: dict[str, deque[float]] = {}  # when each gate gave up, the last times
        self._let_through: dict[str, float] = {}  # until when each is not held
        self.extra = 0  # slots given beside those that there are

    def is_open(self, now_s: float) -> bool:
        """Tell whether nobody is to be held; a clock that was put back must not make it long."""
        return 0.0 < self._open_until_s - now_s <= OPEN_S

    def holds_all(self, now_s: float) -> bool:
        """Tell whether there is nobody whom it lets through, as is usual."""
        return not self._let_through and not self.is_open(now_s)

    def lets_through(self, query: str, now_s: float) -> bool:
        """Tell whether a query is not to be held."""
        left_s = self._let_through.get(query, -math.inf) - now_s
        return self.is_open(now_s) or 0.0 < left_s <= OPEN_S

    def why_let_through(self, now_s: float) -> dict[str, str]:
        """Say why queries are not held that otherwise would be."""
        return {
            query: f"not held until {clock_time(until_s)}: it had waited longer than unheld"
            for query, until_s in self._let_through.items()
            if 0.0 < until_s - now_s <= OPEN_S
        }

    def gate_opened(self, query: str, now_s: float) -> None:
        """Take it that a gate has opened by itself: nobody had let its query in for too long."""
        self._opened.setdefault(query, deque(maxlen=WRONGED)).append(now_s)

    def due(self, now_s: float) -> bool:
        """Tell whether it is time for a look."""
        return self._looked is None or not 0.0 <= now_s - self._looked[0] < LOOK_S

    def look(
        self,
        now_s: float,
        snapshot: Snapshot,
        held_up: Mapping[str, float],
        free: int,
        cores: int | None = None,
    ) -> None:
        """Look whether cores idle while work waits, and whether somebody waits for too long.

        Parameters
        ----------
        held_up
            Who could go if there were slots, and since when.
        free
            How many slots are free, those given included.
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
        self._look_at_waits(now_s, snapshot, held_up)
        busy = (used_s - before[1]) / (now_s - before[0]) / min(self._cores, cores or self._cores)
        harm = len(held_up) > 0 and free == 0 and busy < IDLE
        self._idle = self._idle + 1 if harm else 0
        self._calm = 0 if harm or (busy < FULL and held_up) else self._calm + 1
        most = (MOST - 1) * snapshot.slots
        if self._idle >= GIVE_AFTER and self.extra < most:
            self.extra, self._idle = self.extra + 1, 0
            log.info("cores idle while %d queries wait: %d more slots", len(held_up), self.extra)
        elif self.extra and self._calm >= TAKE_AFTER:
            self.extra, self._calm = self.extra - 1, 0
        self._helpless = self._helpless + 1 if harm and self.extra >= most else 0
        if self._helpless >= OPEN_AFTER:
            self._helpless, self._open_until_s = 0, now_s + OPEN_S
            log.warning("cores idle while queries wait: nobody is held for %.0f s", OPEN_S)

    def _look_at_waits(
        self, now_s: float, snapshot: Snapshot, held_up: Mapping[str, float]
    ) -> None:
        """Let those through that have waited too long several times in a row."""
        if not (held_up or self._waits or self._opened or self._let_through):
            return  # as usual; there may be hundreds of queries
        round_s = max(snapshot.round_s, LEAST_ROUND_S)
        states = {query.name: query for query in snapshot.queries}
        first = max((query.spec.priority for query in states.values()), default=0.0)
        for name in held_up.keys() & states.keys():
            state, (seen, wronged) = states[name], self._waits.get(name, (-1, 0))
            plain_s = PLAIN_ROUNDS * round_s + (state.metrics.batch_s or 0.0)
            late = now_s - held_up[name] > plain_s and state.spec.priority >= first
            if not late or state.admissions == seen:
                continue
            wronged = wronged + 1 if state.admissions == seen + 1 else 1
            self._waits[name] = (state.admissions, wronged)
            if wronged >= WRONGED:
                self._let(name, now_s)
        self._waits = {n: wait for n, wait in self._waits.items() if n in states}
        self._opened = {n: times for n, times in self._opened.items() if n in states}
        for name, times in self._opened.items():
            lately = len(times) == WRONGED and 0.0 <= now_s - times[0] < LATELY_S
            if lately and states[name].spec.priority >= first:
                times.clear()
                self._let(name, now_s)
        self._let_through = {
            n: until_s
            for n, until_s in self._let_through.items()
            if n in states and 0.0 < until_s - now_s <= OPEN_S
        }

    def _let(self, query: str, now_s: float) -> None:
        self._let_through[query] = now_s + OPEN_S
        log.warning("%s had to wait too long: it is not held for %.0f s", query, OPEN_S)
