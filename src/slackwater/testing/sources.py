"""What every source must keep, whoever wrote it."""

import inspect
import json
from collections.abc import Callable
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # the other checks need no Spark
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from slackwater.engines.spark.session.versions import DataSourceStreamReader

MakeReader = Callable[[], "DataSourceStreamReader"]
AddRows = Callable[[int], None]
Row = tuple[Any, ...]


def check_source(
    make_reader: MakeReader, add_rows: AddRows, schema: "StructType | None" = None
) -> None:
    """Check what Spark's exactly-once results need of a streaming source. Starts no Spark.

    Parameters
    ----------
    make_reader
        Makes the reader anew, as Spark does after a restart: ``streamReader`` of the data source.
    add_rows
        Makes so many more rows arrive, or waits until they have.
    schema
        What the source says its columns are: then its rows are compared with it. (Only Spark reads
        DDL: ``StructType.fromDDL(text)`` once a session runs.)
    """
    from slackwater.engines.spark.session.versions import ReadAllAvailable, ReadMaxRows

    add_rows(50)
    reader = make_reader()
    _check_signature(reader)
    offsets = [_through_json(reader.initialOffset())]
    for _ in range(5):
        offsets.append(_through_json(reader.latestOffset(offsets[-1], ReadMaxRows(7))))
        count = len(_rows(reader, offsets[-2], offsets[-1]))
        assert count <= 7, f"a batch has {count} rows, its limit is 7"
    assert offsets[-1] != offsets[0], "50 rows have arrived and none of them is handed out"
    if schema is not None:
        _check_types(_pieces(reader, offsets[0], offsets[-1]), schema)
    batches = [_rows(reader, *pair) for pair in pairwise(offsets)]
    again = make_reader()
    replayed = [_rows(again, *pair) for pair in pairwise(offsets)]
    assert batches == replayed, "a replay from the same offsets has other rows"
    apart = sorted((row for batch in batches for row in batch), key=repr)
    together = sorted(_rows(again, offsets[0], offsets[-1]), key=repr)
    assert apart == together, "small batches have other rows than one large batch"
    again.commit(offsets[1])
    end = _drain(make_reader(), offsets[-1], ReadAllAvailable())
    assert len(_rows(again, offsets[-1], end)) >= 50 - len(apart), "rows that arrived are missing"
    _check_run_once(make_reader, add_rows, end)
    again.stop()


def _check_signature(reader: "DataSourceStreamReader") -> None:
    """Check that row limits can reach the source: Spark calls older readers without them."""
    takes = inspect.signature(reader.latestOffset)
    try:
        takes.bind({}, None)
    except TypeError:
        raise AssertionError(
            f"latestOffset takes {takes}, not (start, limit): no limit would reach it"
        ) from None


def _check_types(pieces: "list[pa.RecordBatch | Row]", schema: "StructType") -> None:
    """Check that rows have the columns of the schema, of those types."""
    import pyarrow as pa
    from pyspark.errors import PySparkException
    from pyspark.sql.types import _make_type_verifier

    from slackwater.engines.spark.session.versions import arrow_schema

    declared = arrow_schema(schema)
    verify = _make_type_verifier(schema)
    for piece in pieces:
        if isinstance(piece, pa.RecordBatch):
            found = [(field.name, field.type) for field in piece.schema]
            wanted = [(field.name, field.type) for field in declared]
            differ = [pair for pair in zip_longest(found, wanted) if pair[0] != pair[1]]
            for mine, theirs in differ:
                raise AssertionError(
                    f"read gives {_column(mine)}, the schema has {_column(theirs)}"
                )
            continue
        try:
            verify(tuple(piece))
        except PySparkException as error:
            raise AssertionError(f"a row does not fit the schema: {error}") from None


def _column(column: "tuple[str, pa.DataType] | None") -> str:
    return "no further column" if column is None else f"the column {column[0]!r} as {column[1]}"


def _check_run_once(make_reader: MakeReader, add_rows: AddRows, start: Any) -> None:
    """Check that an available-now run ends where it began to look, if it knows of such runs."""
    from slackwater.engines.spark.session.versions import (
        ReadAllAvailable,
        SupportsTriggerAvailableNow,
    )

    reader = make_reader()
    if not isinstance(reader, SupportsTriggerAvailableNow):
        return
    add_rows(5)
    reader.prepareForTriggerAvailableNow()
    known = _drain(reader, start, ReadAllAvailable())
    add_rows(5)
    later = _through_json(reader.latestOffset(known, ReadAllAvailable()))
    assert later == known, "an available-now run reads rows that came after it began"
    assert len(_rows(reader, start, known)) >= 5, "an available-now run leaves rows behind"


def _drain(reader: "DataSourceStreamReader", start: Any, limit: Any) -> Any:
    """Go on until nothing is new; a source of traffic may always have more."""
    for _ in range(10):
        end = _through_json(reader.latestOffset(start, limit))
        if end == start:
            break
        start = end
    return start


def _rows(reader: "DataSourceStreamReader", start: Any, end: Any) -> list[Row]:
    return [row for piece in _pieces(reader, start, end) for row in _rows_of(piece)]


def _pieces(reader: "DataSourceStreamReader", start: Any, end: Any) -> "list[pa.RecordBatch | Row]":
    """Read a micro-batch as Spark does: planned here, read in other processes."""
    if start == end:
        return []
    there = _sent(reader, "the reader")
    partitions = [_sent(each, "a partition") for each in reader.partitions(start, end)]
    return [piece for partition in partitions for piece in there.read(partition)]


def _sent(thing: Any, what: str) -> Any:
    """Send something to another process, as Spark does."""
    from pyspark.serializers import CloudPickleSerializer

    sent = CloudPickleSerializer()  # type: ignore[no-untyped-call]
    try:
        return sent.loads(sent.dumps(thing))  # type: ignore[no-untyped-call]
    except Exception as error:
        reason = str(error).splitlines()[0]
        raise AssertionError(
            f"{what} cannot be pickled ({reason}): open files and connections in read"
        ) from error


def _rows_of(piece: Any) -> list[Row]:
    """Return the rows of an Arrow batch, or the one row that a piece is."""
    if not hasattr(piece, "to_pylist"):
        return [tuple(piece)]
    return [tuple(row.values()) for row in piece.to_pylist()]


def _through_json(offset: Any) -> Any:
    """Take an offset through the checkpoint, which keeps it as JSON."""
    assert isinstance(offset, dict), f"an offset is a dict, not {offset!r}"
    return json.loads(json.dumps(offset))
