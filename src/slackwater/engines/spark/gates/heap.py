"""How full the heaps of Spark's processes are."""

from msgspec import UNSET
from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import JavaObject
from slackwater.ipc.messages import MemoryUse


def lasting_bytes(pool: JavaObject) -> int:
    """Return what lives in a pool of the heap: what its last collection left, never more than is
    there now.
    """
    used = int(pool.getUsage().getUsed())
    collected = pool.getCollectionUsage()  # null where the pool is never collected by itself
    left = 0 if collected is None else int(collected.getUsed())
    return min(used, left) if left > 0 else used


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
        self._limit = min(whole, sum(limit for limit in limits if limit > 0) or whole)
        self._scala_context: JavaObject = spark._jsc.sc()
        self._local = bool(self._scala_context.isLocal())

    def message(self) -> MemoryUse:
        """Return it as it goes to the controller; ``executors`` is 0 with a local master."""
        used = sum(map(lasting_bytes, self._pools))
        cores = int(self._scala_context.defaultParallelism()) if self._follow else UNSET
        return MemoryUse(used, self._limit, 0 if self._local else self._executors(), cores)

    def _executors(self) -> int:
        infos = self._scala_context.statusTracker().getExecutorInfos()
        return sum(int(info.totalOnHeapStorageMemory()) for info in infos)
