"""What a live session does to Hadoop, which has no configuration for it.

**A lighter configuration.** Spark serialises the whole Hadoop configuration for each stateful
operator of each micro-batch. It holds some 1,100 entries, half of them defaults of YARN's daemons,
and Hadoop writes beside each one the name of the file that it came from, gzipped on its own. Both
are dead weight here.

**No .crc files.** Hadoop writes a second, hidden file beside each local file, and without its
native library forks a ``chmod`` for it too. (``RawLocalFileSystem`` as ``fs.file.impl`` would also
do without, but breaks ``FileSystem.getLocal`` and leaves stale .crc files of earlier runs beside
new contents. The switch used here deletes them.)
"""

from collections.abc import Callable, Collection
from typing import Any

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

_YARN_DEFAULTS = "yarn-default.xml"

# Classes that add a file of defaults when they are first used, which makes every live configuration
# load all its files anew: use them before, not after.
_ADD_DEFAULTS = (
    "org.apache.hadoop.mapred.JobConf",
    "org.apache.hadoop.yarn.conf.YarnConfiguration",
    "org.apache.hadoop.hdfs.HdfsConfiguration",
)


def apply_live(spark: SparkSession, keys: Collection[str]) -> None:
    """Do to a session that has just started what these rows of the profile ask for."""
    for key, action in _ACTIONS.items():
        if key in keys:
            action(spark)


def stop_crc_files(spark: SparkSession) -> None:
    """Let the local file system of the driver's JVM write no .crc files; it reads old ones."""
    jvm: Any = spark._jvm
    context: Any = spark.sparkContext
    uri = jvm.java.net.URI("file:///")
    # Hadoop caches one object per scheme and user, so all queries share this one.
    files = jvm.org.apache.hadoop.fs.FileSystem.get(uri, context._jsc.hadoopConfiguration())
    files.setWriteChecksum(False)


def lighten(spark: SparkSession) -> bool:
    """Drop YARN's defaults (unless on YARN) and the origin of every entry; False if it cannot.

    New sessions and queries copy the context's configuration, so it must be done before they
    start. An entry that somebody changed stays. It needs two private members of Hadoop's class;
    without them, or when Hadoop reloads its files later, all is as it was: slower, never wrong.
    """
    context: Any = spark.sparkContext
    jvm: Any = spark._jvm
    configuration = context._jsc.hadoopConfiguration()
    try:
        for name in _ADD_DEFAULTS:
            jvm.java.lang.Class.forName(name)
        spark._jsparkSession.sessionState().newHadoopConf()
        if not context.master.startswith("yarn"):
            defaults = jvm.org.apache.hadoop.conf.Configuration(False)
            defaults.addResource(_YARN_DEFAULTS)
            unchanged = _properties(spark, defaults).entrySet()
            _properties(spark, configuration).entrySet().removeAll(unchanged)
        origins = configuration.getClass().getDeclaredField("updatingResource")
        origins.setAccessible(True)
        origins.set(configuration, jvm.java.util.concurrent.ConcurrentHashMap())
    except Py4JError:
        return False
    return True


def _properties(spark: SparkSession, configuration: Any) -> Any:
    """Return the live ``java.util.Properties`` inside a configuration."""
    gateway: Any = spark.sparkContext._gateway
    jvm: Any = spark._jvm
    owner = jvm.java.lang.Class.forName("org.apache.hadoop.conf.Configuration")
    method = owner.getDeclaredMethod("getProps", gateway.new_array(jvm.java.lang.Class, 0))
    method.setAccessible(True)
    return method.invoke(configuration, gateway.new_array(jvm.java.lang.Object, 0))


_ACTIONS: dict[str, Callable[[SparkSession], object]] = {
    "Configuration": lighten,
    "LocalFileSystem.setWriteChecksum": stop_crc_files,
}
