"""Queries of one application, joined by logs: one writes what others read."""

import json
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from slackwater.common.files import replace_text
from slackwater.common.places import refuse_elsewhere
from slackwater.core.clock import Deadline
from slackwater.core.errors import UsageError
from slackwater.engines.spark.session.versions import arrow_table
from slackwater.engines.spark.sources.base import Source, load
from slackwater.engines.spark.sources.log.log import Log, Stream
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.log.segment_log import (
    SegmentLog,
    SegmentOptions,
    SegmentStream,
    append,
    claim,
    trim,
)
from slackwater.engines.spark.sources.process import now_us

SCHEMA = "schema.json"
TRIM_EVERY = 20  # micro-batches
STANDS_STILL_US = 10_000_000  # a log that has not grown for so long has no rate


def write_log(df: DataFrame, folder: str | Path, *, keep_s: float = 86_400.0) -> DataStreamWriter:
    """Return a writer of ``df`` into a log that other queries read: replayable, every row once.

    Each micro-batch becomes a segment of its number. Give it a checkpoint that stays with the
    folder: a log that was written from another one is refused.

    Parameters
    ----------
    keep_s
        Segments that were written longer ago are removed. A reader that has not read them by then
        fails and says so.
    """
    path = refuse_elsewhere("a log", folder).absolute()
    path.mkdir(parents=True, exist_ok=True)
    replace_text(path / SCHEMA, df.schema.json())

    def write(batch: DataFrame, number: int) -> None:
        context = batch.sparkSession.sparkContext
        claim(path, str(context.getLocalProperty("sql.streaming.queryId")))
        if append(path, number, arrow_table(batch)) and number % TRIM_EVERY == 0:
            trim(path, keep_s)

    return df.writeStream.foreachBatch(write)


def read_log(
    spark: SparkSession,
    folders: str | Path | Sequence[str | Path],
    *,
    instance: tuple[int, int] = (0, 1),
    rows_per_batch: int | None = None,
    knob: str | Path | None = None,
    sheddable: bool = False,
    shed_by: Sequence[str] = (),
    spare: str | None = None,
) -> DataFrame:
    """Return the rows of one log, or of several with the same columns together.

    Parameters
    ----------
    folders
        That :func:`write_log` writes to; its query must have been built before.
    instance
        Which of how many instances of the query this is: each reads every n-th row.
    rows_per_batch, knob, sheddable, shed_by, spare
        See :func:`slackwater.spark.feed`. Rows that only this reader does not want are shed here.
    """
    named = [folders] if isinstance(folders, str | Path) else list(folders)
    paths = [refuse_elsewhere("a log", each).absolute() for each in named]
    options = SegmentOptions(
        folders=tuple(str(path) for path in paths),
        instance=f"{instance[0]}/{instance[1]}",
        rows_per_batch=rows_per_batch,
        knob=None if knob is None else str(knob),
        sheddable=sheddable,
        shed_by=tuple(shed_by),
        spare=spare,
    )
    schemas = {_schema(path) for path in paths}
    if len(schemas) != 1:
        raise UsageError("logs that are read together must have the same columns")
    schema = StructType.fromJson(json.loads(schemas.pop()))
    options.shedding.check(schema.names)
    return load(spark, LogSource, options, schema)


def await_log(folder: str | Path, limit_s: float = 60.0) -> None:
    """Wait until the query that writes a log has been built, perhaps by another worker."""
    Deadline(limit_s).wait_for((Path(folder) / SCHEMA).exists, every_s=0.2)


def _schema(folder: Path) -> str:
    try:
        return (folder / SCHEMA).read_text()
    except OSError:
        raise UsageError(f"{folder} is no log: build the query that writes it first") from None


class SegmentReader(LogReader):
    """Reads logs of queries."""

    _options: SegmentOptions

    def _open(self, schema: pa.Schema) -> Log:
        return SegmentLog(self._options, schema)

    def _as_of_us(self, view: dict[str, Stream]) -> int:
        """Return when segments ended: logs grow in bursts, so their rate shows from end to end."""
        since_us = now_us() - STANDS_STILL_US
        times = [max(s.written_us, since_us) for s in view.values() if isinstance(s, SegmentStream)]
        return sum(times) // len(times) if times else now_us()


class LogSource(Source):
    """The data source ``slackwater-log``."""

    FORMAT, OPTIONS, READER = "slackwater-log", SegmentOptions, SegmentReader

    def schema(self) -> StructType:
        raise UsageError(
            "a log's columns are in its folder: read it with slackwater.spark.read_log"
        )
