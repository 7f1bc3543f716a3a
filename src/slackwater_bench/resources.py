"""What a Spark process uses: heap and CPU once a second, and CPU by group of threads."""

from collections import defaultdict
from collections.abc import Callable

from pyspark.sql import SparkSession

from slackwater.core.clock import RealClock, sleep_until
from slackwater.core.protocols import Clock

PERIOD_S = 1.0

# Beginnings of kernel thread names (15 characters at most) and the group they belong to.
_GROUPS: tuple[tuple[str, str], ...] = (
    ("stream executio", "stream execution"),
    ("Executor task", "executor tasks"),
    ("dag-scheduler", "scheduler"),
    ("task-result-get", "scheduler"),
    ("dispatcher", "scheduler"),
    ("spark-listener", "listeners"),
    ("element-trackin", "listeners"),
    ("C1 Compiler", "C1 compiler"),
    ("C2 Compiler", "C2 compiler"),
    ("GC Thread", "garbage collection"),
    ("G1 ", "garbage collection"),
    ("VM Thread", "garbage collection"),  # the serial collector runs here
    ("process reaper", "process reaper"),
)
OTHER = "other threads"


def driver_heap(spark: SparkSession) -> Callable[[], tuple[int, int]]:
    """Return what reads the driver's heap: bytes used, bytes it may have."""
    runtime = spark._jvm.java.lang.Runtime.getRuntime()  # type: ignore[union-attr]
    limit = int(runtime.maxMemory())
    return lambda: (int(runtime.totalMemory()) - int(runtime.freeMemory()), limit)


def sample(
    first_s: float,
    last_s: float,
    cpu_s: Callable[[], float],
    heap: Callable[[], tuple[int, int]],
    clock: Clock = RealClock(),
    more: Callable[[], dict[str, float]] = dict,
) -> list[dict[str, float]]:
    """Return at ``last_s`` with what was seen since ``first_s``, once a second.

    ``more`` is read as often, and goes into the same samples.

    >>> from slackwater.core.clock import VirtualClock
    >>> clock = VirtualClock()
    >>> seen = sample(0, 2, lambda: 1.5 * clock.now(), lambda: (7, 9), clock)
    >>> [(s["t_s"], s["cpu_cores"], s["heap_used_bytes"]) for s in seen]
    [(1.0, 1.5, 7), (2.0, 1.5, 7)]
    """
    samples: list[dict[str, float]] = []
    before_s, cpu_before_s = clock.now(), cpu_s()
    due_s = first_s
    while due_s < last_s:
        due_s = min(due_s + PERIOD_S, last_s)
        sleep_until(due_s, clock)
        at_s, used_s = clock.now(), cpu_s()
        used_bytes, most_bytes = heap()
        cores = (used_s - cpu_before_s) / (at_s - before_s) if at_s > before_s else 0.0
        samples.append(
            {
                "t_s": round(at_s - first_s, 3),
                "heap_used_bytes": used_bytes,
                "heap_max_bytes": most_bytes,
                "cpu_cores": round(cores, 3),
            }
            | more()
        )
        before_s, cpu_before_s = at_s, used_s
    return samples


def group_of(name: str) -> str:
    """Return the group of a thread.

    >>> group_of("stream executio"), group_of("C2 CompilerThre"), group_of("netty")
    ('stream execution', 'C2 compiler', 'other threads')
    """
    return next((group for start, group in _GROUPS if name.startswith(start)), OTHER)


def cpu_by_group(
    before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]]
) -> dict[str, float]:
    """Return CPU seconds by group between two readings of ``process_tree.thread_cpu``."""
    groups: dict[str, float] = defaultdict(float)
    for thread, (name, seconds) in after.items():
        earlier = before.get(thread, (name, 0.0))[1]
        groups[group_of(name)] += max(0.0, seconds - earlier)
    return dict(sorted(groups.items(), key=lambda item: -item[1]))


def driver_share(groups: dict[str, float]) -> float:
    """Return the driver's share of the work of micro-batches: all but their tasks.

    >>> driver_share({"stream execution": 2.0, "scheduler": 1.0, "executor tasks": 1.0})
    0.75
    """
    driver = sum(groups.get(name, 0.0) for name in ("stream execution", "scheduler", "listeners"))
    whole = driver + groups.get("executor tasks", 0.0)
    return driver / whole if whole else 0.0
