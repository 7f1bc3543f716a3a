"""Real and virtual time behind one method, so that one controller runs on both."""

import time


class RealClock:
    """Seconds since the epoch, as event times are."""

    def now(self) -> float:
        return time.time()


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

    def advance_to(self, time_s: float) -> None:
        if time_s < self._now_s:
            raise ValueError(f"time cannot run backwards: {time_s} < {self._now_s}")
        self._now_s = time_s
