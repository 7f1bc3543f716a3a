"""Where a path is that names no file system: on the one that Hadoop is configured for."""

from pathlib import Path

from py4j.java_gateway import JavaClass, JavaObject
from pyspark.sql import SparkSession

from slackwater.common.places import has_scheme, scheme_of


def address_of(place: str | Path, spark: SparkSession | None) -> str:
    """Return a place as Spark takes it: a path is on its default file system (``fs.defaultFS``).

    Where that is this machine's, as it is without a cluster, a path stays as it is.
    """
    session = getattr(spark, "_jsparkSession", None)  # Connect has none
    if session is None or has_scheme(place):
        return str(place)
    conf = session.sessionState().newHadoopConf()
    is_here = scheme_of(str(conf.get("fs.defaultFS"))) == "file"
    return str(place) if is_here else qualified(str(place), conf)


def qualified(path: str, conf: JavaObject) -> str:
    """Return a path as the user wrote it with its file system, by the configuration of Hadoop."""
    found = JavaClass("org.apache.hadoop.fs.Path", conf._gateway_client)(path)
    return str(found.getFileSystem(conf).makeQualified(found).toString())
