"""Real and virtual time behind one interface, and the limits that are counted on it."""

import math
import time
from collections.abc import Callable

from slackwater.core.protocols import Clock


class RealClock:
    """The operating system's time. Nobody else asks for it (see ``tests/test_clock.py``)."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


class VirtualClock:
    """Time that moves only when told to.

    >>> clock = VirtualClock(100.0)
    >>> clock.advance_to(102.5)
    >>> clock.now()
    102.5
    """

    def __init__(self, start_s: float = 0.0) -> None:
        self._now_s = start_s

    def now(self) -> float:
        return self._now_s

    def monotonic(self) -> float:
        return self._now_s

    def sleep(self, seconds: float) -> None:
        self.advance_to(self._now_s + seconds)

    def advance_to(self, time_s: float) -> None:
        """Move on to a moment that is not in the past."""
        if time_s < self._now_s:
            raise ValueError(f"time cannot run backwards: {time_s} < {self._now_s}")
        self._now_s = time_s


def sleep_until(moment_s: float, clock: Clock = RealClock()) -> None:
    """Sleep until a time in seconds since the epoch; not at all if it has passed.

    >>> clock = VirtualClock(100.0)
    >>> sleep_until(103.0, clock)
    >>> clock.now()
    103.0
    """
    clock.sleep(max(0.0, moment_s - clock.now()))


class Timer:
    """Measures how long something takes.

    >>> clock = VirtualClock()
    >>> timer = Timer(clock)
    >>> clock.sleep(1.5)
    >>> timer.elapsed_s, timer.restart(), timer.elapsed_s
    (1.5, 1.5, 0.0)
    """

    def __init__(self, clock: Clock = RealClock()) -> None:
        self._clock = clock
        self._began_s = clock.monotonic()

    @property
    def elapsed_s(self) -> float:
        return self._clock.monotonic() - self._began_s

    def restart(self) -> float:
        """Return the time elapsed so far and count anew from now."""
        now_s = self._clock.monotonic()
        began_s, self._began_s = self._began_s, now_s
        return now_s - began_s


class Deadline:
    """The end of a limited time.

    Parameters
    ----------
    limit_s
        How long it lasts from now on; ``None``: for ever.
    clock
        What it is counted on.

    >>> clock = VirtualClock()
    >>> deadline = Deadline(2.0, clock)
    >>> deadline.left_s, deadline.passed
    (2.0, False)
    >>> deadline.wait_for(lambda: False, every_s=0.5), clock.now(), deadline.passed
    (False, 2.0, True)
    >>> Deadline(None, clock).left_s
    inf
    """

    def __init__(self, limit_s: float | None, clock: Clock = RealClock()) -> None:
        self._clock = clock
        self._end_s = math.inf if limit_s is None else clock.monotonic() + limit_s

    @property
    def left_s(self) -> float:
        return max(0.0, self._end_s - self._clock.monotonic())

    @property
    def passed(self) -> bool:
        return self._clock.monotonic() >= self._end_s

    def wait_for(self, condition: Callable[[], bool], every_s: float) -> bool:
        """Ask again and again until the condition holds or the time is up; return whether it did.

        The condition is asked once even if no time is left.
        """
        while not condition():
            if self.passed:
                return False
            self._clock.sleep(every_s)
        return True
