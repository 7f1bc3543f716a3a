"""How full the heaps of Spark's processes are."""

from pyspark.sql import SparkSession

from slackwater.engines.spark.gates.method_handles import JavaObject
from slackwater.ipc.messages import MemoryUse


class Heap:
    """The driver's heap (with a local master also the executors').

    Young objects are left out: they are mostly garbage that nobody has collected yet.
    """

    def __init__(self, spark: SparkSession) -> None:
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
        used = sum(int(pool.getUsage().getUsed()) for pool in self._pools)
        return MemoryUse(used, self._limit, 0 if self._local else self._executors())

    def _executors(self) -> int:
        infos = self._scala_context.statusTracker().getExecutorInfos()
        return sum(int(info.totalOnHeapStorageMemory()) for info in infos)
