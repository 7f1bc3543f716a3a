"""All that differs between the versions of Spark that Slackwater runs on, 3.5 to 4.3.

What a version lacks is looked for, not looked up: imports are tried, private classes are asked for
by name. Only the class of a setting that must be known before there is a JVM follows from the
version's number.

- 4.0: Python sources. ``latestOffset`` takes no argument: a batch reads all that has come.
- 4.1: classes of the streaming engine move into packages of their own; Arrow UDFs.
- 4.2: Python sources are told where a batch begins and how much it may read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyspark
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas import functions as arrow_functions
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

from slackwater.core.errors import UsageError

JavaObject = Any  # Py4J objects have no static type
Structs = Callable[[Iterator[pa.Array]], Iterator[pa.Array]]

try:
    from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

    HAS_PYTHON_SOURCES = True
except ImportError:  # 3.5: classes that can be derived from, and no more
    HAS_PYTHON_SOURCES = False

    class DataSource:  # type: ignore[no-redef]
        def __init__(self, options: dict[str, str]) -> None:
            self.options = options

    class DataSourceStreamReader:  # type: ignore[no-redef]
        def commit(self, end: dict[str, Any]) -> None: ...

    class InputPartition:  # type: ignore[no-redef]
        pass


try:
    from pyspark.sql.streaming.datasource import (
        ReadAllAvailable,
        ReadLimit,
        ReadMaxRows,
        SupportsTriggerAvailableNow,
    )

    HAS_READ_LIMITS = True
except ImportError:  # before 4.2
    HAS_READ_LIMITS = False

    class ReadLimit:  # type: ignore[no-redef]
        pass

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        pass

    @dataclass
    class ReadMaxRows(ReadLimit):  # type: ignore[no-redef]
        max_rows: int

    class SupportsTriggerAvailableNow:  # type: ignore[no-redef]
        pass


__all__ = [
    "HAS_ARROW_UDFS",
    "HAS_BYTE_LIMITS",
    "HAS_PYTHON_SOURCES",
    "HAS_READ_LIMITS",
    "DataSource",
    "DataSourceStreamReader",
    "InputPartition",
    "ReadAllAvailable",
    "ReadLimit",
    "ReadMaxRows",
    "SupportsTriggerAvailableNow",
    "arrow_schema",
    "arrow_table",
    "check_version",
    "checkpoint_file_manager",
    "engine_package",
    "is_connect",
    "map_structs",
    "missing",
    "reads_stream",
    "refuse_connect",
    "refuse_missing_python_sources",
    "refuse_untold_start",
    "stream_conf",
    "watermark_key",
]

SPARK: str = pyspark.__version__
OLDEST, NEWEST = (3, 5), (4, 3)
_STREAMING = "org.apache.spark.sql.execution.streaming"
HAS_ARROW_UDFS = hasattr(arrow_functions, "arrow_udf")


def version_of(text: str) -> tuple[int, int]:
    """Return the two numbers that count of a version.

    >>> version_of("4.1.4"), version_of("4.3.0.dev1")
    ((4, 1), (4, 3))
    """
    major, minor = re.findall(r"\d+", text)[:2]
    return int(major), int(minor)


def check_version() -> str:
    """Return the version, or raise a :class:`UsageError` for one that was never tried."""
    if not OLDEST <= version_of(SPARK) <= NEWEST:
        raise UsageError(f"PySpark {SPARK} was never tried: install one from 3.5 to 4.3")
    return SPARK


HAS_BYTE_LIMITS = version_of(SPARK) >= (4, 0)  # of files; before, only their number


# -- what is missing ------------------------------------------------------------------------------


def missing() -> str | None:
    """Return in one line what this version lacks; None: nothing."""
    lacks = []
    if not HAS_PYTHON_SOURCES:
        lacks.append("Python sources (4.0): no source gate, no feed, Redis, Kafka or log source")
    elif not HAS_READ_LIMITS:
        lacks.append(
            "start and limit of a batch for Python sources (4.2): the first batch of a feed reads "
            "all there is, sampled feeds and our Redis, Kafka and log sources are refused"
        )
    if not HAS_ARROW_UDFS:
        lacks.append("Arrow UDFs (4.1): approximate results need pandas")
    return f"Spark {SPARK} has no {'; no '.join(lacks)}" if lacks else None


def refuse_missing_python_sources(what: str) -> None:
    """Refuse what is a Python source, where there are none."""
    if not HAS_PYTHON_SOURCES:
        raise UsageError(f"{what} is a Python source: Spark {SPARK} has none, use 4.0 or newer")


def refuse_untold_start(what: str) -> None:
    """Refuse a source that must be told where a batch begins, also the first one after a start."""
    if not HAS_READ_LIMITS:
        raise UsageError(
            f"{what} cannot be read like this on Spark {SPARK}, which does not tell a Python "
            "source where a batch begins: use 4.2 or newer, or a source of Spark's"
        )


def is_connect(spark: SparkSession) -> bool:
    """Tell whether a session is one of Spark Connect: its classes may not be importable here."""
    return type(spark).__module__.startswith("pyspark.sql.connect.")


def refuse_connect(spark: SparkSession) -> None:
    """Refuse a session that has no JVM on this side."""
    if is_connect(spark):
        raise UsageError(
            "this is a session of Spark Connect: use slackwater.spark.ConnectFleet, "
            "see docs/connect.md"
        )


# -- names ----------------------------------------------------------------------------------------


def engine_package(jvm: JavaObject) -> str:
    """Look for the package of executions, triggers, watermarks and the file source.

    Where there is none of the known it is named as in the newest version: probes then say so.
    """
    newest = f"{_STREAMING}.runtime"
    for package in (newest, _STREAMING):
        try:
            jvm.java.lang.Class.forName(f"{package}.MicroBatchExecution")
        except Py4JError:
            continue
        return package
    return newest


def checkpoint_file_manager(version: str = SPARK) -> str:
    """Return the class that writes checkpoints by a plain rename.

    >>> checkpoint_file_manager("4.0.1")
    'org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager'
    """
    package = f"{_STREAMING}.checkpointing" if version_of(version) >= (4, 1) else _STREAMING
    return f"{package}.FileSystemBasedCheckpointFileManager"


def watermark_key(fields: Mapping[str, Any], number: int) -> str:
    """Return by what Spark tells the watermarks of a query apart.

    Each has an id; in 3.5 they are counted as they stand in the plan.

    Parameters
    ----------
    fields
        Of the operator in the plan.
    number
        How many stand before it.
    """
    return str(fields.get("nodeId", number))


def stream_conf(execution: JavaObject, stream_execution: JavaObject) -> JavaObject:
    """Return the configuration that a query runs with, which 3.5 keeps to itself.

    Parameters
    ----------
    stream_execution
        The class that declares it.
    """
    field = stream_execution.getDeclaredField("sparkSessionForStream")
    field.setAccessible(True)
    return field.get(execution).conf()


def reads_stream(scan: JavaObject, source: JavaObject) -> bool:
    """Tell whether files are scanned for a streaming source; 3.5 shows only which files."""
    if version_of(SPARK) >= (4, 0):
        stream = scan.getStream()
        return bool(stream.isDefined() and stream.get().equals(source))
    folder = str(source.toString()).partition("[")[2].removesuffix("]").partition("*")[0]
    paths = scan.relation().location().rootPaths()
    return bool(paths.nonEmpty()) and str(paths.head().toString()).startswith(folder)


# -- Arrow ----------------------------------------------------------------------------------------


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return Spark's types as Arrow's; times are in UTC."""
    if version_of(SPARK) >= (4, 2):
        return to_arrow_schema(schema, timezone="UTC")
    return to_arrow_schema(schema)  # it always was


def arrow_table(frame: DataFrame) -> pa.Table:
    """Collect a batch DataFrame."""
    if hasattr(DataFrame, "toArrow"):
        return frame.toArrow()
    older: Any = frame
    return pa.Table.from_batches(older._collect_as_arrow(), arrow_schema(frame.schema))


def map_structs(
    rows: DataFrame, keys: Sequence[str], function: Structs, result: StructType, name: str
) -> DataFrame:
    """Return the keys of rows and what a function makes of whole rows, as a column of structs.

    The function gets the rows in parts and returns as many in as many parts.
    """
    if HAS_ARROW_UDFS:
        made: Any = arrow_functions.arrow_udf(function, result)  # type: ignore[call-overload]
        return rows.select(*keys, made(F.struct("*")).alias(name))

    def map_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        parts = list(batches)
        found = function(part.to_struct_array() for part in parts)
        for part, column in zip(parts, found, strict=True):
            columns = [*(part.column(key) for key in keys), column]
            yield pa.RecordBatch.from_arrays(columns, names=[*keys, name])

    fields = [rows.schema[key] for key in keys]
    return rows.mapInArrow(map_batches, StructType([*fields, StructField(name, result)]))
