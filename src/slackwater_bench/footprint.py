"""What the processes of a fleet hold while it runs, memory and open files; whether that grows."""

import os
from collections.abc import Callable, Sequence

from pyspark.sql import SparkSession

from slackwater.common.procfs import open_files, resident_bytes
from slackwater.engines.spark.gates.heap import Heap
from slackwater.engines.spark.gates.method_handles import JavaObject

HEAP = "heap_live_bytes"


class Footprint:
    """Reads the processes of one fleet.

    Parameters
    ----------
    spark
        Whose JVM is the driver; this process is the driver's Python.
    controller
        Tells the controller's process, which may be another one after a restart; None: a thread.
    """

    def __init__(self, spark: SparkSession, controller: Callable[[], int | None]) -> None:
        jvm: JavaObject = spark._jvm
        self._jvm = jvm
        self._heap = Heap(spark)
        self._driver = int(jvm.java.lang.ProcessHandle.current().pid())
        self._controller = controller

    def read(self) -> dict[str, float]:
        """Return it with keys as in docs/bench-json.md."""
        pids = {"driver": self._driver, "python": os.getpid(), "controller": self._controller()}
        found: dict[str, float] = {HEAP: self._heap.message().used}
        for name, pid in pids.items():
            if pid is not None:
                found[f"{name}_rss_bytes"] = resident_bytes(pid)
                found[f"{name}_files"] = open_files(pid)
        return found

    def collected_bytes(self) -> int:
        """Have the driver's JVM collect its garbage, and return what is left on its heap."""
        self._jvm.java.lang.System.gc()
        runtime = self._jvm.java.lang.Runtime.getRuntime()
        return int(runtime.totalMemory()) - int(runtime.freeMemory())


def growth(samples: Sequence[dict[str, float]]) -> dict[str, float]:
    """Return by how many percent each figure grew from the first to the last third of a run.

    >>> growth([{"t_s": t, "python_files": files} for t, files in enumerate([10, 10, 30, 11])])
    {'python_files': 10.0}
    """
    third = max(1, len(samples) // 3)
    keys = [key for key in (samples[0] if samples else {}) if _is_held(key)]
    found = {}
    for key in keys:
        first, last = (_mean(part, key) for part in (samples[:third], samples[-third:]))
        if first:
            found[key] = round(100 * (last / first - 1), 2)
    return found


def _is_held(key: str) -> bool:
    return key == HEAP or key.endswith(("_rss_bytes", "_files"))


def _mean(samples: Sequence[dict[str, float]], key: str) -> float:
    return sum(sample.get(key, 0.0) for sample in samples) / len(samples)
