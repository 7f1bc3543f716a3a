"""CPU time of this process and of single threads, as the kernel counts it."""

import time
from pathlib import Path


def process_cpu_s() -> float:
    """User and system time of this process so far."""
    return time.process_time()


def thread_cpu_s(thread_id: int | None) -> float:
    """Time on a CPU of one thread of this process (by its native id); 0 when it has gone."""
    path = Path(f"/proc/self/task/{thread_id}/schedstat")
    try:
        return int(path.read_text().split()[0]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0
