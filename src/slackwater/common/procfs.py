"""What Linux tells in ``/proc`` of processes, threads, CPU time and the machine.

A streaming engine may fork short-lived helpers (``chmod``, ``readlink``) thousands of times. They
are gone before any sampler sees them, so :class:`CpuMeter` adds to each live process what the
kernel has credited to it for children that it has waited for.
"""

import os
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from slackwater.core.clock import RealClock
from slackwater.core.entities import Thread
from slackwater.core.protocols import Clock

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
_START_FIELD = 19  # of what follows the name in /proc/PID/stat and /proc/PID/task/TID/stat


@dataclass(frozen=True, slots=True)
class ProcessStat:
    """The fields of ``/proc/PID/stat`` that matter here."""

    pid: int
    zombie: bool
    parent: int
    group: int
    started: int  # ticks since boot; with the pid it names a process for good
    ticks: int  # own user and system time, plus that of reaped children
    reaped_ticks: int  # the latter alone


def pids() -> Iterator[int]:
    """Yield the numbers of all processes."""
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def read_stat(pid: int) -> ProcessStat | None:
    """Return one process, or ``None`` if it is gone."""
    try:
        fields = _stat_fields(f"/proc/{pid}/stat")
    except OSError:
        return None
    return ProcessStat(
        pid=pid,
        zombie=fields[0] == b"Z",
        parent=int(fields[1]),
        group=int(fields[2]),
        started=int(fields[_START_FIELD]),
        ticks=sum(int(value) for value in fields[11:15]),
        reaped_ticks=sum(int(value) for value in fields[13:15]),
    )


def all_processes() -> dict[int, ProcessStat]:
    """Return every process that can be read now."""
    stats = (read_stat(pid) for pid in pids())
    return {stat.pid: stat for stat in stats if stat is not None}


def descendants(root: int, processes: dict[int, ProcessStat]) -> set[int]:
    """Return ``root`` and all processes below it."""
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


def reaped_cpu(pid: int) -> float:
    """Return CPU seconds of the children that a process has waited for."""
    stat = read_stat(pid)
    return 0.0 if stat is None else stat.reaped_ticks / TICKS_PER_SECOND


def find_thread(pid: int, tid: int | None = None) -> Thread | None:
    """Find a thread by its numbers (without ``tid`` the main one); ``None`` when it has gone."""
    tid = pid if tid is None else tid
    try:
        return Thread(pid, tid, int(_stat_fields(f"/proc/{pid}/task/{tid}/stat")[_START_FIELD]))
    except (OSError, ValueError):
        return None


def is_alive(thread: Thread) -> bool:
    """Tell whether a thread still runs, and is not a later one with the same number."""
    return find_thread(thread.pid, thread.tid) == thread


def threads_of(pid: int) -> Iterator[Thread]:
    """Yield all threads of a process; none when it has gone."""
    try:
        numbers = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return
    for tid in numbers:
        found = find_thread(pid, tid)
        if found is not None:
            yield found


def thread_folder(thread: Thread) -> Path:
    """Return where the kernel describes a thread."""
    return Path(f"/proc/{thread.pid}/task/{thread.tid}")


def thread_name(thread: Thread) -> str:
    """Return its name as the kernel has it: 15 characters at most; empty when it has gone."""
    try:
        return (thread_folder(thread) / "comm").read_text().strip()
    except OSError:
        return ""


def thread_cpu_ns(thread: Thread) -> int:
    """Return its time on a CPU so far; 0 when the thread has gone."""
    return _task_cpu_ns(thread.pid, thread.tid) or 0


def thread_cpu_s(thread_id: int | None) -> float:
    """Return the CPU time of a thread of this process by its native id; 0 when it has gone."""
    return (_task_cpu_ns("self", thread_id) or 0) / 1e9


def thread_cpu(pid: int) -> dict[int, tuple[str, float]]:
    """Return name and CPU seconds of each thread of a process, by thread id.

    Threads that end between two readings are lost, so a breakdown by thread is a lower bound.
    """
    threads: dict[int, tuple[str, float]] = {}
    for name in os.listdir(f"/proc/{pid}/task"):
        thread = Thread(pid, int(name), 0)
        nanoseconds = _task_cpu_ns(pid, thread.tid)
        if nanoseconds is not None:
            threads[thread.tid] = (thread_name(thread), nanoseconds / 1e9)
    return threads


def ticks_since_boot() -> int:
    """Return the time as the kernel counts the start of processes."""
    return int(time.clock_gettime(time.CLOCK_BOOTTIME) * TICKS_PER_SECOND)


def process_cpu_s() -> float:
    """Return user and system time of this process so far."""
    return time.process_time()


def resident_bytes(pid: int) -> int:
    """Return the memory of a process that is in RAM; 0 when it has gone.

    >>> resident_bytes(os.getpid()) > 1e6
    True
    """
    try:
        return int(_read(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError):
        return 0


def open_files(pid: int) -> int:
    """Return how many file descriptors a process has open; 0 when it has gone.

    >>> open_files(os.getpid()) >= 3
    True
    """
    try:
        return len(os.listdir(f"/proc/{pid}/fd"))
    except OSError:
        return 0


def usable_cpus() -> frozenset[int]:
    """Return the CPUs that this process may run on; a fleet's workers share those of a machine."""
    return frozenset(os.sched_getaffinity(0))


def busy_s(cpus: frozenset[int] = frozenset()) -> float:
    """Return CPU seconds used by everybody since the machine started, on some CPUs or all.

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
    return ticks / TICKS_PER_SECOND


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
        """Return the total CPU seconds of the tree."""
        processes = all_processes()
        for pid in descendants(self.root, processes):
            self._members[pid] = processes[pid].started
        self._members = {
            pid: started
            for pid, started in self._members.items()
            if pid in processes and processes[pid].started == started
        }
        ticks = sum(processes[pid].ticks for pid in self._members)
        self._highest = max(self._highest, ticks / TICKS_PER_SECOND)
        return self._highest


class MachineMeter:
    """CPU of a process tree and of everybody else, in cores, between two looks.

    Parameters
    ----------
    root
        Whose tree; this process by default.
    cpus
        The only ones that the tree runs on; none: all.
    clock
        Where time comes from.
    """

    def __init__(
        self,
        root: int | None = None,
        cpus: frozenset[int] = frozenset(),
        clock: Clock = RealClock(),
    ) -> None:
        self._tree = CpuMeter(root)
        self._cpus = cpus
        self._clock = clock
        self.cores = float(len(cpus) or os.cpu_count() or 1)
        self._last = self._read()

    def look(self) -> tuple[float, float, float]:
        """Return seconds since the last look, cores that the tree used, cores that others did."""
        now = self._read()
        seconds, own_s, all_s = (new - old for new, old in zip(now, self._last, strict=True))
        self._last = now
        if seconds <= 0:
            return 0.0, 0.0, 0.0
        return seconds, own_s / seconds, max(0.0, all_s - own_s) / seconds

    def _read(self) -> tuple[float, float, float]:
        return self._clock.monotonic(), self._tree.read(), busy_s(self._cpus)


def _task_cpu_ns(pid: int | str, tid: int | None) -> int | None:
    """Read ``schedstat``: it counts in nanoseconds, and psutil's figure of threads is wrong."""
    try:
        return int(_read(f"/proc/{pid}/task/{tid}/schedstat").split()[0])
    except (OSError, ValueError, IndexError):
        return None


def _stat_fields(path: str) -> list[bytes]:
    """Return the fields after the name, which may itself hold spaces and brackets."""
    return _read(path).rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    """Read a small file; hundreds are read a second, and Python's own way takes five times."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)
