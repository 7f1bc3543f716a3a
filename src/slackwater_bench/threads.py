"""Whose CPU it was: threads of Spark's JVM, grouped by what they do."""

from collections import defaultdict

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


def group_of(name: str) -> str:
    """The group of a thread.

    >>> group_of("stream executio"), group_of("C2 CompilerThre"), group_of("netty")
    ('stream execution', 'C2 compiler', 'other threads')
    """
    return next((group for start, group in _GROUPS if name.startswith(start)), OTHER)


def cpu_by_group(
    before: dict[int, tuple[str, float]], after: dict[int, tuple[str, float]]
) -> dict[str, float]:
    """CPU seconds by group between two readings of ``process_tree.thread_cpu``."""
    groups: dict[str, float] = defaultdict(float)
    for thread, (name, seconds) in after.items():
        earlier = before.get(thread, (name, 0.0))[1]
        groups[group_of(name)] += max(0.0, seconds - earlier)
    return dict(sorted(groups.items(), key=lambda item: -item[1]))


def driver_share(groups: dict[str, float]) -> float:
    """Of the work of micro-batches, what is the driver's: all but their tasks.

    >>> driver_share({"stream execution": 2.0, "scheduler": 1.0, "executor tasks": 1.0})
    0.75
    """
    driver = sum(groups.get(name, 0.0) for name in ("stream execution", "scheduler", "listeners"))
    whole = driver + groups.get("executor tasks", 0.0)
    return driver / whole if whole else 0.0
