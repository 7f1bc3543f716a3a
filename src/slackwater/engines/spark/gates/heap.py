"""How full the heaps of Spark's processes are."""

import re
from collections.abc import Callable

from msgspec import UNSET
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import Handles, JavaObject
from slackwater.ipc.messages import MemoryUse

_USED = re.compile(r"used = (\d+)")  # as a MemoryUsage prints itself


def lasting_bytes(used: int, left: int | None) -> int:
    """Return what lives in a pool of the heap: what its last collection left, never more than is
    there now.

    ``left`` is None where the pool is never collected by itself.
    """
    return min(used, left) if left else used


class Heap:
    """The driver's heap (with a local master also the executors').

    What counts is what was left after the last collection: the rest is mostly garbage. Young
    objects are left out. Until a pool has been collected once, all that is in it counts.
    """

    def __init__(self, spark: SparkSession, follow_cores: bool = False) -> None:
        self._follow = follow_cores
        jvm: JavaObject = spark._jvm
        beans = jvm.java.lang.management.ManagementFactory.getMemoryPoolMXBeans()
        heap = [pool for pool in beans if pool.getType().toString().startswith("Heap")]
        self._pools = [pool for pool in heap if "Eden" not in pool.getName()]
        whole = int(jvm.java.lang.Runtime.getRuntime().maxMemory())
        limits = [int(pool.getUsage().getMax()) for pool in self._pools]
        self._scala_context: JavaObject = spark._jsc.sc()
        self._shown = self._shows(Handles(spark))
        self._limit = min(whole, sum(limit for limit in limits if limit > 0) or whole)
        self._local = bool(self._scala_context.isLocal())

    def message(self) -> MemoryUse:
        """Return it as it goes to the controller; ``executors`` is 0 with a local master."""
        shown, _, cores_now = self._shown()[1:-1].rpartition(", ")
        used = sum(lasting_bytes(*each) for each in self._read(shown))
        cores = int(cores_now) if self._follow else UNSET
        return MemoryUse(used, self._limit, 0 if self._local else self._executors(), cores)

    def _shows(self, handles: Handles) -> Callable[[], str]:
        """Return what tells in one call: each pool, now and when it was collected; the cores."""
        kind = handles.type("java.lang.management.MemoryUsage")
        owner = "java.lang.management.MemoryPoolMXBean"
        line = handles.text(
            *(
                handles.method(owner, name, kind, of=pool)
                for pool in self._pools
                for name in ("getUsage", "getCollectionUsage")
            ),
            handles.method(
                "org.apache.spark.SparkContext",
                "defaultParallelism",
                handles.int,
                of=self._scala_context,
            ),
        )
        return lambda: str(handles.call(line))

    def _read(self, shown: str) -> list[tuple[int, int | None]]:
        """Return what is used of each pool, and what its last collection left."""
        used = [_USED.search(usage) for usage in shown.split(", ")]
        found = [None if each is None else int(each[1]) for each in used]
        return [(now or 0, left) for now, left in zip(found[::2], found[1::2], strict=True)]

    def _executors(self) -> int:
        infos = self._scala_context.statusTracker().getExecutorInfos()
        return sum(int(info.totalOnHeapStorageMemory()) for info in infos)
