"""How busy the machine is, as ``/proc/stat`` tells it."""

import os
import time
from pathlib import Path

from slackwater.common.process_tree import CpuMeter

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


def busy_s(cpus: frozenset[int] = frozenset()) -> float:
    """CPU seconds that all processes have used since the machine was started, on some CPUs or all.

    >>> 0 < busy_s(frozenset([0])) <= busy_s()
    True
    """
    wanted = {f"cpu{number}" for number in cpus} or {"cpu"}
    ticks = 0
    for line in Path("/proc/stat").read_text().splitlines():
        name, *fields = line.split()
        if name in wanted:
            user, nice, system, _idle, _waiting, interrupts, soft = map(int, fields[:7])
            ticks += user + nice + system + interrupts + soft
    return ticks / _TICKS_PER_SECOND


class MachineMeter:
    """CPU of a process tree and of everybody else, in cores, between two looks.

    Parameters
    ----------
    root
        Whose tree; this process by default.
    cpus
        The only ones that the tree runs on; none: all.
    """

    def __init__(self, root: int | None = None, cpus: frozenset[int] = frozenset()) -> None:
        self._tree = CpuMeter(root)
        self._cpus = cpus
        self.cores = float(len(cpus) or os.cpu_count() or 1)
        self._last = (time.monotonic(), self._tree.read(), busy_s(cpus))

    def look(self) -> tuple[float, float, float]:
        """Seconds since the last look, cores that the tree used, cores that others did."""
        now = (time.monotonic(), self._tree.read(), busy_s(self._cpus))
        seconds, own_s, all_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        if seconds <= 0:
            return 0.0, 0.0, 0.0
        return seconds, own_s / seconds, max(0.0, all_s - own_s) / seconds
