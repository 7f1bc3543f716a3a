"""Texts become typed columns, many at a time."""

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.sources.log.options import Malformed, Timestamps

_PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000}
_HAS_ZONE = r"(?:[zZ]|[+-]\d\d:?\d\d)$"
_SHOWN = 60  # characters of a value in a message

Values = TypeVar("Values", bound=Sequence[Any])
T = TypeVar("T")


def text_column(
    where: str, values: pa.Array, kind: pa.DataType, timestamps: Timestamps, malformed: Malformed
) -> pa.Array:
    """A column of ``kind`` from bytes that hold texts.

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
    """All or nothing; raises ArrowInvalid."""
    if pa.types.is_binary(kind):
        return values.cast(kind)
    texts = values.cast(pa.string())
    if pa.types.is_timestamp(kind):
        return cast_timestamps(texts, kind, timestamps)
    return texts.cast(kind)


def cast_timestamps(texts: pa.Array, kind: pa.DataType, written: Timestamps) -> pa.Array:
    """Texts as ISO 8601 (UTC when they name no zone), texts or numbers in units since 1970.

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
    """One line about a value that cannot be read."""
    shown = repr(value)
    shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
    return SlackwaterError(
        f"{where}: {shown} {why}; mend what writes it, or read it as null with malformed='null'"
    )
