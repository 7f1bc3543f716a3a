"""Which progress of each run has been passed on."""

from collections import defaultdict, deque
from functools import partial

KEPT = 256  # triggers of a run; Spark's listener is hardly ever so far behind


class News:
    """Tells of every trigger once.

    Its progress comes from the query at its gate and from Spark's listener, in either order, and
    from one of them alone while no gate is on. Times are compared for being the same only: a clock
    that was put back must not make all that follows seem old.

    >>> news = News()
    >>> news.is_new("run", "13:00:01"), news.is_new("run", "13:00:01"), news.is_new("run", "13:00")
    (True, False, True)
    >>> news.forget("run")
    >>> news.is_new("run", "13:00:01")
    True
    """

    def __init__(self) -> None:
        self._told: dict[str, deque[str]] = defaultdict(partial(deque[str], maxlen=KEPT))

    def knows(self, run: str, timestamp: str) -> bool:
        """Tell whether the progress of a trigger that began then was passed on."""
        return run in self._told and timestamp in self._told[run]

    def is_new(self, run: str, timestamp: str) -> bool:
        """Tell, once, whether the progress of a trigger that began then is to be passed on."""
        if self.knows(run, timestamp):
            return False
        self._told[run].append(timestamp)
        return True

    def forget(self, run: str) -> None:
        """Take it that a run has ended."""
        self._told.pop(run, None)
