"""Columns of a log's rows: what a user asks for, and how texts and JSON objects become them."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
from pyspark.errors import PySparkException
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

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.engines.spark.sources.log.log import LogOptions, Malformed, Timestamps
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, SAMPLE_TYPE

NUMBERS = (BooleanType, ByteType, ShortType, IntegerType, LongType, FloatType, DoubleType)
JSON_TEXTS = (StringType, DecimalType, DateType, TimestampType, TimestampNTZType)
TEXTS = (BinaryType, *JSON_TEXTS)

_NO_VALUE = b"{}"  # as JSON
_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_HAS_ZONE = r"(?:[zZ]|[+-]\d\d:?\d\d)$"
_SHOWN = 60  # characters of a value in a message

Values = TypeVar("Values", bound=Sequence[Any])
T = TypeVar("T")

# -- what a user asks for -------------------------------------------------------------------------


def parse_schema(schema: str | StructType) -> StructType:
    """Parse the columns that DDL names; needs a running Spark, whose parser it asks."""
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


def with_extra(columns: StructType, extra: Mapping[str, str], options: LogOptions) -> StructType:
    """Return the user's columns, those that the source adds, and the sample."""
    if options.sampled:
        extra = {**extra, SAMPLE: SAMPLE_TYPE}
    found = StructType(list(columns.fields))
    for name, kind in extra.items():
        found.add(name, DataType.fromDDL(kind))
    check_unique(found)
    check_event_time(found, options.event_time)
    return found


# -- texts ----------------------------------------------------------------------------------------


def text_column(
    where: str, values: pa.Array, kind: pa.DataType, timestamps: Timestamps, malformed: Malformed
) -> pa.Array:
    """Make a column of ``kind`` from bytes that hold texts.

    >>> text_column("a", pa.array([b"1", None]), pa.int32(), "iso", "fail").to_pylist()
    [1, None]
    >>> text_column("a", pa.array([b"1", b"x"]), pa.int32(), "iso", "null").to_pylist()
    [1, None]
    """

    def give_up(value: pa.Array, error: Exception) -> pa.Array:
        if malformed == "null":
            return pa.nulls(1, kind)
        raise malformed_error(where, value[0].as_py(), f"is no {kind}")

    pieces = salvage(values, lambda some: cast_texts(some, kind, timestamps), give_up)
    return pieces[0] if len(pieces) == 1 else pa.concat_arrays(pieces)


def cast_texts(values: pa.Array, kind: pa.DataType, timestamps: Timestamps) -> pa.Array:
    """Convert all or nothing; raises ArrowInvalid."""
    if pa.types.is_binary(kind):
        return values.cast(kind)
    texts = values.cast(pa.string())
    if pa.types.is_timestamp(kind):
        return cast_timestamps(texts, kind, timestamps)
    return texts.cast(kind)


def cast_timestamps(texts: pa.Array, kind: pa.DataType, written: Timestamps) -> pa.Array:
    """Read texts as ISO 8601 (UTC when they name no zone), texts or numbers in units since 1970.

    >>> utc = pa.timestamp("us", "UTC")
    >>> str(cast_timestamps(pa.array(["2024-05-01T10:00:00"]), utc, "iso")[0])
    '2024-05-01 10:00:00+00:00'
    >>> str(cast_timestamps(pa.array([1714557600500]), utc, "ms")[0])
    '2024-05-01 10:00:00.500000+00:00'
    """
    if written == "iso":
        if kind.tz is None:
            return texts.cast(kind)
        zoned = pc.match_substring_regex(texts, _HAS_ZONE)
        return pc.if_else(zoned, texts, pc.binary_join_element_wise(texts, "Z", "")).cast(kind)
    if written == "us":
        return texts.cast(pa.int64()).cast(kind)
    factor = _PER_SECOND["us"] // _PER_SECOND[written]
    microseconds = pc.round(pc.multiply(texts.cast(pa.float64()), float(factor)))
    return microseconds.cast(pa.int64()).cast(kind)


def salvage(
    values: Values, convert: Callable[[Values], T], give_up: Callable[[Values, Exception], T]
) -> list[T]:
    """Convert all at once, else in ever smaller halves, so that ``give_up`` gets single values.

    >>> [piece.to_pylist() for piece in salvage(
    ...     ["1", "2", "x"], lambda some: pa.array(some).cast(pa.int8()),
    ...     lambda some, error: pa.nulls(1))]
    [[1], [2], [None]]
    """
    try:
        return [convert(values)]
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        if len(values) == 1:
            return [give_up(values, error)]
    middle = len(values) // 2
    halves: tuple[Any, Any] = (values[:middle], values[middle:])
    return [piece for half in halves for piece in salvage(half, convert, give_up)]


def malformed_error(where: str, value: Any, why: str) -> SlackwaterError:
    """Say in one line what is wrong with a value that cannot be read."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return SlackwaterError(
        f"{where}: {shown} {why}; mend what writes it, or read it as null with malformed='null'"
    )


# -- JSON objects ---------------------------------------------------------------------------------


class JsonColumns:
    """Parses JSON objects into the columns of a schema.

    A field that is missing or null is null, one that is not in the schema is left out; a message
    without a value is a row of nulls.

    >>> columns = JsonColumns(pa.schema([("a", pa.int64())]), "iso", "null")
    >>> columns.parse([b'{"a": 1, "b": 2}', None, b"nonsense"], "topic").to_pydict()
    {'a': [1, None, None]}
    """

    def __init__(self, schema: pa.Schema, timestamps: Timestamps, malformed: Malformed) -> None:
        self._schema = schema
        self._timestamps = timestamps
        self._malformed = malformed
        self._written = pa.schema([(f.name, _written(f.type, timestamps)) for f in schema])

    def parse(self, values: Sequence[bytes | None], where: str) -> pa.Table:
        """Make one row for each value; ``where`` is for messages."""

        def give_up(bad: Sequence[bytes | None], error: Exception) -> pa.Table:
            if self._malformed == "null":
                return self._convert([_NO_VALUE])
            reason = str(error).splitlines()[0]
            raise malformed_error(where, bad[0], f"does not fit the schema ({reason})")

        pieces = salvage(list(values), self._convert, give_up)
        return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)

    def _convert(self, values: Sequence[bytes | None]) -> pa.Table:
        """Convert all or nothing; raises ArrowInvalid."""
        texts = [(value or _NO_VALUE).strip() or _NO_VALUE for value in values]
        # Arrow takes any number of objects a text, and a text that starts with null kills it.
        if not all(text[:1] == b"{" and text[-1:] == b"}" for text in texts):
            raise pa.ArrowInvalid("not a JSON object")
        if not texts:
            return self._schema.empty_table()
        buffer = b"\n".join(texts)
        read = pj.read_json(
            pa.BufferReader(buffer),
            read_options=pj.ReadOptions(use_threads=False, block_size=len(buffer) + 1),
            parse_options=pj.ParseOptions(
                explicit_schema=self._written,
                newlines_in_values=True,
                unexpected_field_behavior="ignore",
            ),
        )
        if len(read) != len(texts):
            raise pa.ArrowInvalid("not one JSON object")
        read.validate(full=True)  # texts may hold bytes that are no UTF-8
        return pa.table([self._column(read, field) for field in self._schema], schema=self._schema)

    def _column(self, read: pa.Table, field: pa.Field) -> pa.ChunkedArray:
        column = read.column(field.name)
        if not pa.types.is_timestamp(field.type):
            return column.cast(field.type)
        return cast_timestamps(column.combine_chunks(), field.type, self._timestamps)


def _written(kind: pa.DataType, timestamps: Timestamps) -> pa.DataType:
    """Return the type that JSON has for a column's type."""
    if pa.types.is_timestamp(kind):
        return {"iso": pa.string(), "us": pa.int64()}.get(timestamps, pa.float64())
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return pa.string()
    return kind
