"""JSON objects become columns, many at a time."""

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.json as pj

from slackwater.engines.spark.sources.log.options import Malformed, Timestamps
from slackwater.engines.spark.sources.log.texts import cast_timestamps, malformed_error, salvage

_NO_VALUE = b"{}"


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
        """One row for each value; ``where`` is for messages."""

        def give_up(bad: Sequence[bytes | None], error: Exception) -> pa.Table:
            if self._malformed == "null":
                return self._convert([_NO_VALUE])
            reason = str(error).splitlines()[0]
            raise malformed_error(where, bad[0], f"does not fit the schema ({reason})")

        pieces = salvage(list(values), self._convert, give_up)
        return pieces[0] if len(pieces) == 1 else pa.concat_tables(pieces)

    def _convert(self, values: Sequence[bytes | None]) -> pa.Table:
        """All or nothing; raises ArrowInvalid."""
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
    """The type that JSON has for a column's type."""
    if pa.types.is_timestamp(kind):
        return {"iso": pa.string(), "us": pa.int64()}.get(timestamps, pa.float64())
    if pa.types.is_date(kind) or pa.types.is_decimal(kind):
        return pa.string()
    return kind
