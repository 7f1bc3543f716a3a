"""How far a benchmark is, and how long it still takes."""

import time
from collections.abc import Callable, Sequence

from slackwater_bench.trial import Trial

_AROUND_S = 30.0  # starting Spark, draining, stopping: a first guess


def expected_s(trial: Trial) -> float:
    """About how long a trial takes; its queries start one after another."""
    return _AROUND_S + trial.queries + trial.warmup_s + trial.seconds


class Pace:
    """Says where a list of steps is.

    Parameters
    ----------
    costs_s
        A guess at each step's duration. Steps that are done correct the guess at the others.
    now
        Seconds of a clock that does not jump.

    Examples
    --------
    >>> clock = [0.0]
    >>> pace = Pace([60.0, 60.0], lambda: clock[0])
    >>> pace.step("fcfs")
    '1 of 2: fcfs; 0:00 gone, about 2:00 left'
    >>> clock[0] = 90.0
    >>> pace.step("spark")
    '2 of 2: spark; 1:30 gone, about 1:30 left'
    """

    def __init__(self, costs_s: Sequence[float], now: Callable[[], float] = time.monotonic) -> None:
        self._costs_s = list(costs_s)
        self._now = now
        self._begun = 0
        self._start_s = now()

    def step(self, what: str) -> str:
        """A line for the step that begins."""
        done_s, left_s = sum(self._costs_s[: self._begun]), sum(self._costs_s[self._begun :])
        elapsed_s = self._now() - self._start_s
        if done_s > 0:
            left_s *= elapsed_s / done_s
        self._begun += 1
        times = f"{_clock(elapsed_s)} gone, about {_clock(left_s)} left"
        return f"{self._begun} of {len(self._costs_s)}: {what}; {times}"


def _clock(seconds: float) -> str:
    """Minutes and seconds, hours where there are some.

    >>> _clock(75), _clock(3725)
    ('1:15', '1:02:05')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
