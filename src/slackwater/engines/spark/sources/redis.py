"""A streaming source over Redis Streams: replays exactly, can be limited from outside."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.base import Source, load
from slackwater.engines.spark.sources.log.columns import (
    NUMBERS,
    TEXTS,
    check_types,
    parse_schema,
    with_extra,
)
from slackwater.engines.spark.sources.log.log import (
    Log,
    LogOptions,
    Malformed,
    Start,
    Timestamps,
)
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.options import check_names, check_secret

ARRIVAL = "arrival_time"  # the column with the time of an entry's id
_SCHEMES = ("redis", "rediss", "unix")


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
    """Return a streaming DataFrame of the entries of Redis Streams, one partition a stream.

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
        sampled=sampled,
        sheddable=sheddable,
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
    return load(spark, RedisSource, options, columns)


@dataclass(frozen=True, kw_only=True)
class RedisOptions(LogOptions):
    """Where the streams are."""

    url: str  # redis://host:port/database, rediss:// with TLS, unix:///path
    streams: tuple[str, ...]
    password: str | None = None  # env:VARIABLE
    arrival: bool = False  # whether rows carry ``arrival_time``

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.streams, "stream")
        try:
            parts = urlsplit(self.url)
            written_out = parts.password
            _ = parts.port
        except ValueError as error:
            raise UsageError(f"{self.url!r} is no address of Redis: {error}") from None
        if parts.scheme not in _SCHEMES:
            raise UsageError(
                f"{self.url!r} is no address of Redis: write redis://host:port, "
                "rediss://host:port or unix:///path"
            )
        if written_out is not None or {"password", "ssl_password"} & parse_qs(parts.query).keys():
            raise UsageError(
                "a password in the url would show in Spark's plans: put it into an environment "
                "variable X and give password='env:X'"
            )
        if self.password is not None:
            check_secret("password", self.password)

    @property
    def server(self) -> str:
        """Its name in messages."""
        parts = urlsplit(self.url)
        return f"Redis at {parts.netloc.rpartition('@')[2] or parts.path}"


class RedisReader(LogReader):
    """Reads entries of Redis Streams."""

    _options: RedisOptions

    def _open(self, schema: pa.Schema) -> Log:
        from slackwater.engines.spark.sources.log.redis_log import RedisLog  # needs the client

        return RedisLog(self._options, schema)


class RedisSource(Source):
    """The data source ``slackwater-redis``."""

    FORMAT, OPTIONS, READER = "slackwater-redis", RedisOptions, RedisReader

    def schema(self) -> StructType:
        raise UsageError("entries of Redis have no types: give the columns with .schema('…')")
