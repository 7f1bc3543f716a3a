"""Heap and CPU once a second, for plots over time."""

import time
from collections.abc import Callable

from pyspark.sql import SparkSession

PERIOD_S = 1.0


def driver_heap(spark: SparkSession) -> Callable[[], tuple[int, int]]:
    """A reading of the driver's heap: bytes used, bytes it may have."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()  # type: ignore[union-attr]
    limit = int(runtime.maxMemory())
    return lambda: (int(runtime.totalMemory()) - int(runtime.freeMemory()), limit)


def sample(
    first_s: float,
    last_s: float,
    cpu_s: Callable[[], float],
    heap: Callable[[], tuple[int, int]],
    now: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> list[dict[str, float]]:
    """Return at ``last_s`` with what was seen since ``first_s``, once a second.

    >>> clock = [0.0]
    >>> def sleep(seconds): clock[0] += seconds
    >>> seen = sample(0, 2, lambda: 1.5 * clock[0], lambda: (7, 9), lambda: clock[0], sleep)
    >>> [(s["t_s"], s["cpu_cores"], s["heap_used_bytes"]) for s in seen]
    [(1.0, 1.5, 7), (2.0, 1.5, 7)]
    """
    samples: list[dict[str, float]] = []
    before_s, cpu_before_s = now(), cpu_s()
    due_s = first_s
    while due_s < last_s:
        due_s = min(due_s + PERIOD_S, last_s)
        sleep(max(0.0, due_s - now()))
        at_s, used_s = now(), cpu_s()
        used_bytes, most_bytes = heap()
        cores = (used_s - cpu_before_s) / (at_s - before_s) if at_s > before_s else 0.0
        samples.append(
            {
                "t_s": round(at_s - first_s, 3),
                "heap_used_bytes": used_bytes,
                "heap_max_bytes": most_bytes,
                "cpu_cores": round(cores, 3),
            }
        )
        before_s, cpu_before_s = at_s, used_s
    return samples
