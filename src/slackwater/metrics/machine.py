"""How busy the machine is, as ``/proc/stat`` tells it."""

import os
import time
from pathlib import Path

from slackwater.metrics.process_tree import CpuMeter

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def busy_s() -> float:
    """CPU seconds that all processes together have used since the machine was started."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    user, nice, system, _idle, _waiting, interrupts, soft = (int(each) for each in fields[:7])
    return (user + nice + system + interrupts + soft) / _TICKS_PER_SECOND


class MachineMeter:
    """CPU of a process tree and of everybody else, in cores, between two looks.

    Parameters
    ----------
    root
        Whose tree; this process by default.
    """

    def __init__(self, root: int | None = None) -> None:
        self._tree = CpuMeter(root)
        self._last = (time.monotonic(), self._tree.read(), busy_s())

    def look(self) -> tuple[float, float, float]:
        """Seconds since the last look, cores that the tree used, cores that others did."""
        now = (time.monotonic(), self._tree.read(), busy_s())
        seconds, own_s, all_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        if seconds <= 0:
            return 0.0, 0.0, 0.0
        return seconds, own_s / seconds, max(0.0, all_s - own_s) / seconds
