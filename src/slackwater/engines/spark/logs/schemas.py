"""Columns that a user asks of a source, as Spark DDL or as Spark types."""

from collections.abc import Iterable

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    ByteType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    IntegerType,
    LongType,
    ShortType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from slackwater.core.errors import UsageError

NUMBERS = (BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
TEXTS = (StringType, BinaryType, DecimalType, DateType, TimestampType, TimestampNTZType)


def parse_schema(schema: str | StructType) -> StructType:
    """The columns that DDL names; needs a running Spark, whose parser it asks."""
    if isinstance(schema, StructType):
        return schema
    try:
        parsed = DataType.fromDDL(schema)
    except PySparkException as error:
        reason = next((line for line in str(error).splitlines() if line.strip()), "")
        raise UsageError(f"the schema {schema!r} cannot be parsed: {reason}") from None
    if not isinstance(parsed, StructType):
        raise UsageError(f"the schema {schema!r} names no columns: write 'name type, …'")
    return parsed


def check_schema(schema: StructType, extra: Iterable[str], event_time: str | None) -> None:
    """Refuse columns that are there twice, and an event time that is none."""
    names = [*schema.names, *extra]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise UsageError(f"the column {twice[0]} is there twice; rename it or leave it out")
    if event_time is None or event_time in extra:
        return
    if event_time not in schema.names:
        raise UsageError(
            f"event_time names {event_time!r}, the columns are {', '.join(names)}: name one of them"
        )
    if not isinstance(schema[event_time].dataType, TimestampType):
        kind = schema[event_time].dataType.simpleString()
        raise UsageError(f"the column {event_time} is a {kind}; an event time is a timestamp")


def check_types(schema: StructType, known: tuple[type[DataType], ...], source: str) -> None:
    """Refuse types that the source cannot make."""
    for field in schema:
        if not isinstance(field.dataType, known):
            kind = field.dataType.simpleString()
            raise UsageError(
                f"{source} cannot give the column {field.name} as {kind}: read it as a string and "
                "convert it with Spark's functions"
            )


def arrow_schema(schema: StructType) -> pa.Schema:
    """As Spark takes rows from a Python source."""
    return to_arrow_schema(schema, timezone="UTC")
