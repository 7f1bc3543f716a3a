"""A process with busy threads, to see what the kernel gives to each.

``python busy_process.py THREADS`` prints the threads' numbers in one line, then burns. Each line
that it reads makes its first thread start one more, which inherits what was set on that one; the
line ``fork`` makes it start a process.
"""

import hashlib
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from slackwater.common.threads import Thread, find_thread, thread_cpu_ns


def burn(report: Callable[[int], None], wishes: "queue.Queue[str] | None" = None) -> None:
    report(threading.get_native_id())
    while True:
        hashlib.pbkdf2_hmac("sha256", b"busy", b"thread", 20_000)  # lets go of the interpreter
        if wishes is not None and not wishes.empty():
            if wishes.get() == "fork":  # it ends when we do: then its input does
                report(subprocess.Popen(["cat"], stdin=subprocess.PIPE).pid)
            else:
                threading.Thread(target=burn, args=(report,), daemon=True).start()


def main() -> None:
    # Whatever the tests run under: between threads of the idle class nice values hardly count.
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    wanted = int(sys.argv[1])
    numbers: list[int] = []
    wishes: queue.Queue[str] = queue.Queue()
    for i in range(wanted):
        args = (numbers.append, wishes if i == 0 else None)
        threading.Thread(target=burn, args=args, daemon=True).start()
    while len(numbers) < wanted:
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


@contextmanager
def busy_process(threads: int, *, session: bool = False, cpu: int = 0) -> Iterator[Busy]:
    """Run one, pinned to one CPU; ``session`` puts it into a login session of its own."""
    command = ["taskset", "-c", str(cpu), sys.executable, __file__, str(threads)]
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


def cpu_ratio(first: Thread, second: Thread, seconds: float = 3.0) -> float:
    """CPU time of the first ÷ that of the second, over so long."""
    before = thread_cpu_ns(first), thread_cpu_ns(second)
    time.sleep(seconds)
    after = thread_cpu_ns(first), thread_cpu_ns(second)
    return (after[0] - before[0]) / (after[1] - before[1])


if __name__ == "__main__":
    main()
