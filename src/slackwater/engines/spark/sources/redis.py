"""A streaming source over Redis Streams: replays exactly, can be limited from outside."""

from collections.abc import MutableMapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.log.loading import load, with_extra
from slackwater.engines.spark.sources.log.log import Log
from slackwater.engines.spark.sources.log.options import Malformed, Start, Timestamps
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.log.redis_options import ARRIVAL, RedisOptions
from slackwater.engines.spark.sources.log.schemas import (
    NUMBERS,
    TEXTS,
    check_types,
    parse_schema,
)
from slackwater.engines.spark.sources.sampled_rows import new_plan_path
from slackwater.engines.spark.sources.shed_rows import new_shed_path

FORMAT = "slackwater-redis"


def redis_stream(
    spark: SparkSession,
    url: str,
    streams: str | Sequence[str],
    *,
    schema: str | StructType,
    start: Start = "earliest",
    rows_per_batch: int | None = None,
    knob: str | Path | None = None,
    arrival: bool = False,
    event_time: str | None = None,
    timestamps: Timestamps = "iso",
    malformed: Malformed = "fail",
    retry_s: float = 60.0,
    fail_on_data_loss: bool = True,
    password: str | None = None,
    sampled: bool = False,
    sheddable: bool = False,
    shed_by: Sequence[str] = (),
    spare: str | None = None,
) -> DataFrame:
    """A streaming DataFrame of the entries of Redis Streams, one partition a stream.

    Parameters
    ----------
    url
        ``redis://host:port/database``, ``rediss://…`` with TLS, ``unix:///path``.
    streams
        Keys of the streams. One that does not exist yet is read once it does.
    schema
        Columns, as DDL or Spark types: the fields of an entry by name. A missing field is null.
    start
        Where a query without a checkpoint begins: ``earliest`` or ``latest``.
    rows_per_batch
        Most rows in a micro-batch.
    knob
        A JSON file ``{"rows": number or null}``, read before every micro-batch, that limits its
        rows too; see :func:`slackwater.spark.feed`.
    arrival
        Whether rows carry the column ``arrival_time``, when Redis took the entry.
    event_time
        The column with the event time.
    timestamps
        How fields of timestamp columns are written: ``iso`` (UTC unless they name a zone) or
        numbers of ``s``, ``ms`` or ``us`` since 1970.
    malformed
        What a value that does not fit its column does: ``fail`` the query or become ``null``.
    retry_s
        How long Redis may be away before the query fails.
    fail_on_data_loss
        Whether the query fails when entries were trimmed or deleted before they were read.
    password
        ``env:X``, where ``X`` is an environment variable that holds it.
    sampled
        Whether the rows are for :meth:`Fleet.approximate`: they then carry the column ``sample``,
        which must be kept up to there. Needs ``event_time``.
    sheddable, shed_by, spare
        Whether and how rows may be dropped when there are too many; see
        :func:`slackwater.spark.feed`.

    Raises
    ------
    UsageError
        When an option is wrong, before Spark is asked.
    """
    options = RedisOptions(
        url=url,
        streams=(streams,) if isinstance(streams, str) else tuple(streams),
        start=start,
        rows_per_batch=rows_per_batch,
        knob=None if knob is None else str(knob),
        arrival=arrival,
        event_time=event_time,
        timestamps=timestamps,
        malformed=malformed,
        retry_s=retry_s,
        fail_on_data_loss=fail_on_data_loss,
        password=password,
        plan=new_plan_path() if sampled else None,
        shed=new_shed_path() if sheddable or shed_by or spare else None,
        shed_by=tuple(shed_by),
        spare=spare,
    )
    if find_spec("redis") is None:
        raise UsageError("reading from Redis needs its client: pip install 'slackwater[redis]'")
    columns = parse_schema(schema)
    check_types(columns, NUMBERS + TEXTS, "a field of Redis")
    extra = {ARRIVAL: "timestamp"} if arrival else {}
    columns = with_extra(columns, extra, options)
    options.shedding.check(columns.names)
    return load(spark, RedisSource, columns, options)


class RedisSource(DataSource):
    """The data source ``slackwater-redis``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._redis = RedisOptions.from_texts(options)

    def schema(self) -> StructType:
        raise UsageError("entries of Redis have no types: give the columns with .schema('…')")

    def streamReader(self, schema: StructType) -> "RedisReader":
        return RedisReader(self._redis, schema)


class RedisReader(LogReader):
    """Reads entries of Redis Streams."""

    _options: RedisOptions

    def _open(self, schema: pa.Schema) -> Log:
        from slackwater.engines.spark.sources.log.redis_log import RedisLog  # needs the client

        return RedisLog(self._options, schema)
