"""Threads of other processes, as the kernel knows them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_START_FIELD = 19  # of what follows the name in /proc/PID/task/TID/stat


class Thread(NamedTuple):
    """One thread; its start tells it from a later one that got the same number."""

    pid: int
    tid: int
    started: int  # ticks since boot

    @property
    def folder(self) -> Path:
        return Path(f"/proc/{self.pid}/task/{self.tid}")

    @property
    def alive(self) -> bool:
        return find_thread(self.pid, self.tid) == self


def find_thread(pid: int, tid: int | None = None) -> Thread | None:
    """A thread by its numbers (without ``tid`` the main one); ``None`` when it has gone."""
    tid = pid if tid is None else tid
    try:
        text = _read(f"/proc/{pid}/task/{tid}/stat")
    except (OSError, ValueError):
        return None
    fields = text.rpartition(b")")[2].split()  # the name may hold spaces and brackets
    return Thread(pid, tid, int(fields[_START_FIELD]))


def threads_of(pid: int) -> Iterator[Thread]:
    """All threads of a process; none when it has gone."""
    try:
        numbers = sorted(int(name) for name in os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return
    for tid in numbers:
        found = find_thread(pid, tid)
        if found is not None:
            yield found


def thread_name(thread: Thread) -> str:
    """As the kernel has it: 15 characters at most; empty when the thread has gone."""
    try:
        return (thread.folder / "comm").read_text().strip()
    except OSError:
        return ""


def thread_cpu_ns(thread: Thread) -> int:
    """Time on a CPU so far; 0 when the thread has gone."""
    try:
        return int(_read(f"/proc/{thread.pid}/task/{thread.tid}/schedstat").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def _read(path: str) -> bytes:
    """A file of a few lines; hundreds are read a second, and Python's own way takes five times."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 4096)
    finally:
        os.close(file)
