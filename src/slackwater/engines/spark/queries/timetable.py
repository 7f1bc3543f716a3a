"""When each table is to be refreshed, and how stale it is."""

import math
import random
import threading
from collections.abc import Collection
from dataclasses import dataclass, replace

from slackwater.core.clock import RealClock
from slackwater.core.protocols import Clock
from slackwater.engines.spark.queries.record import Freshness

BACK_OFF_S = 2.0  # after the first failure, twice as long after the second, …
LONGEST_BACK_OFF_S = 600.0
JITTER = 0.25  # of a back-off: what fails together is not to come back together


@dataclass(frozen=True, slots=True)
class Table:
    """One table at one moment; moments are on a clock that never jumps."""

    name: str
    every_s: float | None  # None: it is refreshed once
    priority: float
    read_s: float | None = None  # up to when its results have all that had come
    refreshed_s: float | None = None  # the same in seconds since the epoch, for people
    began_s: float | None = None  # of the run that it has now
    failures: int = 0  # since it was last refreshed
    retry_s: float = -math.inf  # not before

    @property
    def due_s(self) -> float:
        """When its next run may begin."""
        if self.read_s is None or self.every_s is None:
            return self.retry_s
        return max(self.retry_s, self.read_s + self.every_s)

    def staleness(self, now_s: float) -> tuple[bool, float]:
        """Return how much it needs a run: who was never refreshed most, then age ÷ every."""
        if self.read_s is None:
            return True, self.priority
        return False, self.priority * (now_s - self.read_s) / (self.every_s or 1.0)


class Timetable:
    """Orders tables by how stale they are: age ÷ ``every`` × priority.

    One thread notes runs, any may add, remove and read: a table is replaced, never changed.

    >>> from slackwater.core.clock import VirtualClock
    >>> clock = VirtualClock(100.0)
    >>> timetable = Timetable(clock)
    >>> timetable.add("hourly", 3600.0, refreshed_s=-7100.0)
    >>> timetable.add("minutely", 60.0, refreshed_s=-80.0)
    >>> timetable.due()
    ['minutely', 'hourly']
    """

    def __init__(self, clock: Clock = RealClock(), chance: random.Random | None = None) -> None:
        self._clock = clock
        self._chance = chance or random.Random()
        self._lock = threading.Lock()  # between finding a table and putting another in its place
        self._tables: dict[str, Table] = {}

    def add(
        self,
        name: str,
        every_s: float | None,
        priority: float = 1.0,
        refreshed_s: float | None = None,
    ) -> None:
        """Take in a table.

        Parameters
        ----------
        every_s
            How old its results may be; None: it is refreshed once.
        refreshed_s
            When it was last refreshed, before this process began, in seconds since the epoch.
        """
        read_s = None
        if refreshed_s is not None:
            age_s = max(0.0, self._clock.now() - refreshed_s)
            read_s = self._clock.monotonic() - age_s
        # Who is refreshed once is due, whatever was before.
        self._tables[name] = Table(name, every_s, priority, read_s, refreshed_s)

    def remove(self, name: str) -> None:
        """Forget a table."""
        with self._lock:
            self._tables.pop(name, None)

    def begin(self, name: str) -> None:
        """Note that a run begins."""
        self._replace(name, began_s=self._clock.monotonic())

    def succeed(self, name: str) -> None:
        """Note that a run has read all that was there when it began."""
        table = self._tables.get(name)
        if table is not None and table.began_s is not None:
            took_s = self._clock.monotonic() - table.began_s
            self._replace(
                name,
                read_s=table.began_s,
                refreshed_s=self._clock.now() - took_s,
                began_s=None,
                failures=0,
                retry_s=-math.inf,
            )

    def fail(self, name: str) -> None:
        """Note that a run has failed: the next is tried later, and later each time."""
        table = self._tables.get(name)
        if table is not None:
            doubled = 2.0 ** min(table.failures, 30)
            pause_s = min(LONGEST_BACK_OFF_S, BACK_OFF_S * doubled)
            pause_s *= self._chance.uniform(1 - JITTER, 1 + JITTER)
            retry_s = self._clock.monotonic() + pause_s
            self._replace(name, began_s=None, failures=table.failures + 1, retry_s=retry_s)

    def interrupt(self, name: str) -> None:
        """Note that a run was ended by somebody."""
        self._replace(name, began_s=None)

    def runs(self, name: str) -> bool:
        """Tell whether it was begun and has not come to an end."""
        table = self._tables.get(name)
        return table is not None and table.began_s is not None

    def due(self) -> list[str]:
        """Return those whose next run may begin, the stalest first."""
        now_s = self._clock.monotonic()
        ready = [t for t in self._resting() if t.due_s <= now_s]
        ready.sort(key=lambda table: table.staleness(now_s), reverse=True)
        return [table.name for table in ready]

    def next_s(self, names: Collection[str] | None = None) -> float:
        """Return how long it takes until the first of them, or of all, is due."""
        now_s = self._clock.monotonic()
        tables = (t for t in self._resting() if names is None or t.name in names)
        return min((max(0.0, table.due_s - now_s) for table in tables), default=math.inf)

    def age_s(self, name: str) -> float | None:
        """Return how old its results are; None: it was never refreshed, as far as is known."""
        table = self._tables.get(name)
        if table is None or table.read_s is None:
            return None
        return self._clock.monotonic() - table.read_s

    def freshness(self, name: str) -> Freshness | None:
        """Show a table to people."""
        table = self._tables.get(name)
        if table is None:
            return None
        return Freshness(
            self._state(table), table.every_s, table.refreshed_s, table.failures, self.age_s(name)
        )

    def _state(self, table: Table) -> str:
        if table.began_s is not None:
            return "running"
        if table.failures:
            return "retrying"
        return "due" if table.due_s <= self._clock.monotonic() else "fresh"

    def _resting(self) -> list[Table]:
        return [table for table in list(self._tables.values()) if table.began_s is None]

    def _replace(self, name: str, **changes: object) -> None:
        with self._lock:
            table = self._tables.get(name)
            if table is not None:
                self._tables[name] = replace(table, **changes)  # type: ignore[arg-type]
