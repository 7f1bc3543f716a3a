"""How far a benchmark is, and how long it still takes."""

from slackwater.core.clock import RealClock, Timer
from slackwater.core.protocols import Clock


class TimeLeft:
    """Says where a list of steps is.

    Parameters
    ----------
    clock
        Where time comes from.

    Examples
    --------
    >>> from slackwater.core.clock import VirtualClock
    >>> clock = VirtualClock()
    >>> left = TimeLeft(clock)
    >>> left.expect(60.0, 60.0)
    >>> left.step("fcfs")
    '1 of 2: fcfs; 0:00 gone, about 2:00 left'
    >>> clock.sleep(90.0)
    >>> left.step("spark")
    '2 of 2: spark; 1:30 gone, about 1:30 left'
    """

    def __init__(self, clock: Clock = RealClock()) -> None:
        self._costs_s: list[float] = []
        self._timer = Timer(clock)
        self._begun = 0

    def expect(self, *costs_s: float) -> None:
        """Add steps with a guess at each one's duration; those that are done correct it."""
        self._costs_s += costs_s

    def step(self, what: str) -> str:
        """Return a line for the step that begins."""
        done_s, left_s = sum(self._costs_s[: self._begun]), sum(self._costs_s[self._begun :])
        elapsed_s = self._timer.elapsed_s
        if done_s > 0:
            left_s *= elapsed_s / done_s
        self._begun += 1
        times = f"{_clock(elapsed_s)} gone, about {_clock(left_s)} left"
        return f"{self._begun} of {len(self._costs_s)}: {what}; {times}"


def _clock(seconds: float) -> str:
    """Write minutes and seconds, hours where there are some.

    >>> _clock(75), _clock(3725)
    ('1:15', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
