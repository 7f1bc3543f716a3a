"""A process with threads to steer: busy ones, to see what the kernel gives to each, or idle ones.

``python busy_process.py busy|idle THREADS`` prints the threads' numbers in one line, then burns or
waits. Each line that it reads makes its first thread start one more, which inherits what was set on
that one; the line ``fork`` makes it start a process.
"""

import hashlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from slackwater.common.procfs import find_thread, thread_cpu_ns
from slackwater.core.entities import Thread


def burn(report: Callable[[int], None], wishes: "queue.Queue[str]") -> None:
    report(threading.get_native_id())
    while True:
        hashlib.pbkdf2_hmac("sha256", b"busy", b"thread", 20_000)  # lets go of the interpreter
        if not wishes.empty():
            fulfil(wishes.get(), burn, report)


def idle(report: Callable[[int], None], wishes: "queue.Queue[str]") -> None:
    report(threading.get_native_id())
    while True:
        fulfil(wishes.get(), idle, report)


def fulfil(wish: str, work: Callable[..., None], report: Callable[[int], None]) -> None:
    if wish == "fork":  # it ends when we do: then its input does
        report(subprocess.Popen(["cat"], stdin=subprocess.PIPE).pid)
    else:
        start(work, report, queue.Queue())


def start(
    work: Callable[..., None], report: Callable[[int], None], wishes: "queue.Queue[str]"
) -> None:
    threading.Thread(target=work, args=(report, wishes), daemon=True).start()


def main() -> None:
    # Whatever the tests run under: between threads of the idle class nice values hardly count.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    work, wanted = {"busy": burn, "idle": idle}[sys.argv[1]], int(sys.argv[2])
    numbers: list[int] = []
    wishes: queue.Queue[str] = queue.Queue()
    for i in range(wanted):
        start(work, numbers.append, wishes if i == 0 else queue.Queue())
        while len(numbers) <= i:
            time.sleep(0.001)
    print(*numbers, flush=True)
    for line in sys.stdin:
        before = len(numbers)
        wishes.put(line.strip())
        while len(numbers) == before:
            time.sleep(0.001)
        print(numbers[-1], flush=True)


class Busy:
    """The process and its threads."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self.process = process
        assert process.stdout is not None
        self.threads = [self._find(int(tid)) for tid in process.stdout.readline().split()]

    def offspring(self) -> Thread:
        """A thread that the first one started now."""
        return self._find(self._ask("thread"))

    def fork(self) -> Thread:
        """A process that the first thread started now."""
        found = find_thread(self._ask("fork"))
        assert found is not None
        return found

    def _ask(self, what: str) -> int:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"{what}\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def _find(self, tid: int) -> Thread:
        found = find_thread(self.process.pid, tid)
        assert found is not None
        return found


def busy_process(threads: int, *, session: bool = False) -> AbstractContextManager[Busy]:
    """Run one whose threads burn, pinned to one CPU; ``session`` gives it a login session."""
    return _run(["taskset", "-c", "0", *_command("busy", threads)], session)


def idle_process(threads: int, *, session: bool = False) -> AbstractContextManager[Busy]:
    """Run one whose threads wait, where what is set on them counts and not what they get."""
    return _run(_command("idle", threads), session)


def _command(kind: str, threads: int) -> list[str]:
    # Tests of other processes may run beside these: the last word says whose this is.
    return [sys.executable, __file__, kind, str(threads), f"of-{os.getpid()}"]


@contextmanager
def _run(command: list[str], session: bool) -> Iterator[Busy]:
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=session,
    )
    try:
        yield Busy(process)
    finally:
        process.kill()
        process.wait()


def cpu_ratio(first: Thread, second: Thread, cpu_s: float = 1.5) -> float:
    """Return CPU time of the first ÷ that of the second, while they use so much together.

    However long that takes: beside other work they get less, and a ratio of little is a poor one.
    """
    before = thread_cpu_ns(first), thread_cpu_ns(second)
    while True:
        time.sleep(0.05)
        used = thread_cpu_ns(first) - before[0], thread_cpu_ns(second) - before[1]
        if sum(used) >= cpu_s * 1e9:
            return used[0] / max(1, used[1])


if __name__ == "__main__":
    main()
