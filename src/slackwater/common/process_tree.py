"""CPU time of a process with everything it started, read from ``/proc``.

A streaming engine may fork short-lived helpers (``chmod``, ``readlink``) thousands of times. They
are gone before any sampler sees them, so the meter adds to each live process what the kernel has
credited to it for children that it has waited for.
"""

import os
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

_TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of ``/proc/PID/stat`` that matter here."""

    pid: int
    parent: int
    started: int  # ticks since boot; with the pid it names a process for good
    ticks: int  # own user and system time, plus that of reaped children
    reaped_ticks: int  # the latter alone


def read_stat(pid: int) -> ProcessStat | None:
    """One process, or None if it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    fields = text.rpartition(")")[2].split()  # the command's name may hold spaces and brackets
    return ProcessStat(
        pid=pid,
        parent=int(fields[1]),
        started=int(fields[19]),
        ticks=sum(int(value) for value in fields[11:15]),
        reaped_ticks=sum(int(value) for value in fields[13:15]),
    )


def all_processes() -> dict[int, ProcessStat]:
    """Every process that can be read now."""
    pids = (int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit())
    stats = (read_stat(pid) for pid in pids)
    return {stat.pid: stat for stat in stats if stat is not None}


def descendants(root: int, processes: dict[int, ProcessStat]) -> set[int]:
    """``root`` and all processes below it."""
    children: dict[int, list[int]] = defaultdict(list)
    for stat in processes.values():
        children[stat.parent].append(stat.pid)
    found: set[int] = set()
    pending = [root]
    while pending:
        pid = pending.pop()
        if pid in processes and pid not in found:
            found.add(pid)
            pending.extend(children[pid])
    return found


class CpuMeter:
    """Seconds of CPU used so far by a process tree; never goes back.

    A reading taken while a child is being reaped can miss it for an instant (it has left the tree
    and is not yet credited to its parent), hence the running maximum. A process that was seen in
    the tree is still counted after its parent has died and it was adopted by another.
    """

    def __init__(self, root: int | None = None) -> None:
        self.root = os.getpid() if root is None else root
        self._members: dict[int, int] = {}  # pid -> start time, for every member ever seen alive
        self._highest = 0.0

    def read(self) -> float:
        """Total CPU seconds of the tree."""
        processes = all_processes()
        for pid in descendants(self.root, processes):
            self._members[pid] = processes[pid].started
        self._members = {
            pid: started
            for pid, started in self._members.items()
            if pid in processes and processes[pid].started == started
        }
        ticks = sum(processes[pid].ticks for pid in self._members)
        self._highest = max(self._highest, ticks / _TICKS_PER_SECOND)
        return self._highest


def thread_cpu(pid: int) -> dict[int, tuple[str, float]]:
    """Thread id -> (name, CPU seconds), from ``schedstat``, which counts in nanoseconds.

    Threads that end between two readings are lost, so a breakdown by thread is a lower bound.
    """
    threads: dict[int, tuple[str, float]] = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            nanoseconds = int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            continue
        threads[int(task.name)] = (name, nanoseconds / 1e9)
    return threads


def reaped_cpu(pid: int) -> float:
    """CPU seconds of children that this process has waited for."""
    stat = read_stat(pid)
    return 0.0 if stat is None else stat.reaped_ticks / _TICKS_PER_SECOND
