"""Columns that a user asks of a source, as Spark DDL or as Spark types."""

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import (
    ArrayType,
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
JSON_TEXTS = (StringType, DecimalType, DateType, TimestampType, TimestampNTZType)
TEXTS = (BinaryType, *JSON_TEXTS)


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


def check_event_time(schema: StructType, event_time: str | None) -> None:
    """Refuse an event time that is none of the columns, or no time."""
    if event_time is None:
        return
    if event_time not in schema.names:
        names = ", ".join(schema.names)
        raise UsageError(f"event_time names {event_time!r}; name one of the columns {names}")
    kind = schema[event_time].dataType
    if not isinstance(kind, TimestampType):
        raise UsageError(
            f"the column {event_time} is a {kind.simpleString()}; an event time is a timestamp"
        )


def check_unique(schema: StructType) -> None:
    """Refuse a column that is there twice."""
    twice = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if twice:
        raise UsageError(f"the column {twice[0]} is there twice; rename it or leave it out")


def check_types(schema: StructType, known: tuple[type[DataType], ...], source: str) -> None:
    """Refuse types that the source cannot make."""
    for field in schema:
        if not isinstance(field.dataType, known):
            kind = field.dataType.simpleString()
            raise UsageError(
                f"{source} cannot give the column {field.name} as {kind}: read it as a string and "
                "convert it with Spark's functions"
            )


def check_json_types(schema: StructType) -> None:
    """Refuse what JSON cannot be read into; times and decimals are read at the top level only."""
    for field in schema:
        if not isinstance(field.dataType, JSON_TEXTS) and not _is_plain_json(field.dataType):
            kind = field.dataType.simpleString()
            raise UsageError(
                f"JSON cannot give the column {field.name} as {kind}: read it as a string and "
                "convert it with Spark's functions"
            )


def _is_plain_json(kind: DataType) -> bool:
    if isinstance(kind, StructType):
        return all(_is_plain_json(field.dataType) for field in kind)
    if isinstance(kind, ArrayType):
        return _is_plain_json(kind.elementType)
    return isinstance(kind, (StringType, *NUMBERS))


def arrow_schema(schema: StructType) -> pa.Schema:
    """As Spark takes rows from a Python source."""
    return to_arrow_schema(schema, timezone="UTC")
