"""Where a writer's results go, before it is started."""

from dataclasses import dataclass
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.common.places import FILE_FORMATS

CHECKPOINTS = "spark.sql.streaming.checkpointLocation"  # of queries that name none


@dataclass(frozen=True, slots=True)
class Sink:
    """What results are written as, and where; None: nowhere that Spark knows."""

    format: str
    place: str | None

    @property
    def files(self) -> str | None:
        """Return the folder or address of Spark's own file sink; None: it is another sink."""
        return self.place if self.format.lower() in FILE_FORMATS else None


def sink_of(writer: DataStreamWriter, table: str | None, spark: SparkSession) -> Sink | None:
    """Return where a writer that is started, or started with ``toTable``, would write.

    None: it cannot be told, as in a version of Spark that keeps it elsewhere.
    """
    try:
        stated = Sink(_field(writer, "source"), _option(writer, "path"))
        return stated if table is None else _of_table(stated, table, spark)
    except (Py4JError, PySparkException):
        return None


def places_of(writer: DataStreamWriter, table: str | None, spark: SparkSession) -> list[str]:
    """Return where files are written whose names Spark's checkpoint manager makes.

    Those are the checkpoint, and the log of a file sink; a place that cannot be told is left out.
    """
    sink = sink_of(writer, table, spark)
    if sink is None:
        return []
    files = sink.files
    if table is not None and sink.place is None and sink.format.lower() in FILE_FORMATS:
        files = _database(table, spark)  # into which a new table comes
    checkpoint = _option(writer, "checkpointLocation") or spark.conf.get(CHECKPOINTS, None)
    return [place for place in (checkpoint, files) if place]


def _of_table(stated: Sink, table: str, spark: SparkSession) -> Sink:
    """Return where the files of a table are; a new one is where the writer says, if it does."""
    try:
        if not spark.catalog.tableExists(table):  # asked first: Spark logs what is thrown
            return stated
        rows = spark.sql(f"DESCRIBE TABLE EXTENDED {table}").collect()
    except (Py4JError, PySparkException):  # its catalog is not known, or describes nothing
        return stated
    facts: dict[str, str] = {row["col_name"]: row["data_type"] for row in rows}  # columns first
    return Sink(facts.get("Provider") or stated.format, facts.get("Location"))


def _database(table: str, spark: SparkSession) -> str | None:
    name = table.rpartition(".")[0] or spark.catalog.currentDatabase()
    try:
        return spark.catalog.getDatabase(name).locationUri
    except (Py4JError, PySparkException):
        return None


def _option(writer: DataStreamWriter, name: str) -> str | None:
    found = _field(writer, "extraOptions").get(name)
    return str(found.get()) if found.isDefined() else None


def _field(writer: Any, name: str) -> Any:
    java = writer._jwrite
    declared = java.getClass().getDeclaredField(name)
    declared.setAccessible(True)
    return declared.get(java)
