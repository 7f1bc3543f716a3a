"""Which of Spark's classes writes checkpoints, where those are not on this machine.

The tuned session's class renames, which replaces a file on this machine only: elsewhere the first
attempt of a batch that is done again would stay. Spark's default replaces everywhere, on S3 by a
copy and two deletions for each file. Spark's module for clouds has a class that leaves that out: a
file is there when its upload has ended, or not at all.
"""

import logging
from collections.abc import Iterable

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from slackwater.common.places import scheme_of

log = logging.getLogger("slackwater.fleet")

MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
ABORTABLE = "org.apache.spark.internal.io.cloud.AbortableStreamBasedCheckpointFileManager"


def suit_checkpoints(spark: SparkSession, written: Iterable[str]) -> None:
    """Choose the class by where checkpoints and logs of sinks are; a session has one for all.

    Parameters
    ----------
    written
        Paths and addresses.
    """
    schemes = {scheme_of(place) for place in written}
    if schemes <= {"file"}:
        return
    if schemes == {"s3a"} and _is_there(spark, ABORTABLE):
        spark.conf.set(MANAGER, ABORTABLE)
        return
    if "s3a" in schemes:
        why = (
            "spark-hadoop-cloud is not among the jars"
            if schemes == {"s3a"}
            else "some are elsewhere, and a session has one way of writing for all"
        )
        log.warning("checkpoint files on S3 are copied once more each: %s; see docs/lake.md", why)
    spark.conf.unset(MANAGER)


def _is_there(spark: SparkSession, name: str) -> bool:
    jvm = spark._jvm
    assert jvm is not None
    try:  # not Class.forName: its loader does not know jars that were named in the session
        jvm.java.lang.Thread.currentThread().getContextClassLoader().loadClass(name)
    except Py4JError:
        return False
    return True
