"""A streaming source over Kafka topics in Python: no connector jar is needed."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, get_args

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.base import Source, load
from slackwater.engines.spark.sources.log.columns import check_json_types, parse_schema, with_extra
from slackwater.engines.spark.sources.log.log import (
    Log,
    LogOptions,
    Malformed,
    Start,
    Timestamps,
)
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.options import check_names, check_secret

Value = Literal["bytes", "string", "json"]

# What a message has besides its value, with the types that Spark's own Kafka source gives.
MESSAGE_COLUMNS = {
    "key": "binary",
    "topic": "string",
    "partition": "int",
    "offset": "bigint",
    "timestamp": "timestamp",
}
# How settings end that must not show.
_SECRET = ("password", "passphrase", "secret", "key.pem", "token")
_OURS = {
    "bootstrap.servers",
    "enable.auto.commit",
    "enable.partition.eof",
    "auto.offset.reset",
    "group.id",
}


def kafka_topic(
    spark: SparkSession,
    servers: str | Sequence[str],
    topics: str | Sequence[str],
    *,
    schema: str | StructType | None = None,
    value: Value | None = None,
    columns: Sequence[str] = (),
    start: Start = "earliest",
    rows_per_batch: int | None = None,
    knob: str | Path | None = None,
    event_time: str | None = None,
    timestamps: Timestamps = "iso",
    malformed: Malformed = "fail",
    retry_s: float = 60.0,
    fail_on_data_loss: bool = True,
    settings: Mapping[str, str] | None = None,
    sampled: bool = False,
    sheddable: bool = False,
    shed_by: Sequence[str] = (),
    spare: str | None = None,
) -> DataFrame:
    """Return a streaming DataFrame of the messages of Kafka topics, partition by partition.

    Parameters
    ----------
    servers
        Where to begin: ``host:port``, or several.
    topics
        Names of topics. Partitions that are added to them later are read from their beginning.
    schema
        Columns, as DDL or Spark types: each value is then a JSON object with these fields.
    value
        Without a schema, the column ``value`` is there as ``bytes`` (the default) or ``string``.
    columns
        What else is wanted of a message: ``key``, ``topic``, ``partition``, ``offset``,
        ``timestamp``, with the types that Spark's own Kafka source gives.
    start, rows_per_batch, knob, event_time, timestamps, malformed, retry_s, sampled
        See :func:`redis_stream`.
    sheddable, shed_by, spare
        See :func:`slackwater.spark.feed`.
    fail_on_data_loss
        Whether the query fails when messages went past their retention before they were read.
    settings
        More settings of the client library (librdkafka), such as ``security.protocol``. Secrets
        are written ``env:X``, where ``X`` is an environment variable.

    Raises
    ------
    UsageError
        When an option is wrong, before Spark is asked.
    """
    if schema is not None and value not in (None, "json"):
        raise UsageError("a schema reads values as JSON: give either a schema or a value")
    if schema is None and value == "json":
        raise UsageError("JSON values need a schema: the columns they are read into")
    options = KafkaOptions(
        servers=servers if isinstance(servers, str) else ",".join(servers),
        topics=(topics,) if isinstance(topics, str) else tuple(topics),
        value="json" if schema is not None else value or "bytes",
        columns=tuple(columns),
        start=start,
        rows_per_batch=rows_per_batch,
        knob=None if knob is None else str(knob),
        event_time=event_time,
        timestamps=timestamps,
        malformed=malformed,
        retry_s=retry_s,
        fail_on_data_loss=fail_on_data_loss,
        settings=json.dumps(dict(settings or {}), sort_keys=True),
        sampled=sampled,
        sheddable=sheddable,
        shed_by=tuple(shed_by),
        spare=spare,
    )
    if find_spec("confluent_kafka") is None:
        raise UsageError("reading from Kafka needs its client: pip install 'slackwater[kafka]'")
    if schema is None:
        own = parse_schema("value binary" if options.value == "bytes" else "value string")
    else:
        own = parse_schema(schema)
        check_json_types(own)
    wanted = with_extra(own, {name: MESSAGE_COLUMNS[name] for name in options.columns}, options)
    options.shedding.check(wanted.names)
    return load(spark, KafkaSource, options, wanted)


@dataclass(frozen=True, kw_only=True)
class KafkaOptions(LogOptions):
    """Where the topics are and what is wanted of their messages."""

    servers: str  # host:port, several with commas
    topics: tuple[str, ...]
    value: Value = "bytes"  # how a message's value is given
    columns: tuple[str, ...] = ()  # what else of a message is given
    settings: str = "{}"  # of the client library, a JSON object of texts

    def __post_init__(self) -> None:
        super().__post_init__()
        check_names(self.topics, "topic")
        if self.sampled and self.rows_per_batch is not None:
            raise UsageError("a sampled topic is read without rows_per_batch: leave it out")
        if not self.servers.strip():
            raise UsageError("name at least one server: host:port")
        if self.value not in get_args(Value):
            raise UsageError(f"value is {self.value!r}; it may be one of bytes, string, json")
        for column in self.columns:
            if column not in MESSAGE_COLUMNS:
                known = ", ".join(MESSAGE_COLUMNS)
                raise UsageError(f"a message has no {column!r}; columns may be {known}")
        for name, text in self.client_settings().items():
            if name in _OURS:
                raise UsageError(f"the setting {name} is the source's own; leave it out")
            if name.endswith(_SECRET):
                check_secret(name, text)

    def client_settings(self) -> dict[str, str]:
        """Return settings of the client library."""
        try:
            found = json.loads(self.settings)
        except ValueError:
            found = None
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            raise UsageError(f"settings must be an object of texts, not {self.settings}")
        return found

    @property
    def server(self) -> str:
        """Its name in messages."""
        return f"Kafka at {self.servers}"


class KafkaReader(LogReader):
    """Reads messages of Kafka topics."""

    _options: KafkaOptions

    def _open(self, schema: pa.Schema) -> Log:
        from slackwater.engines.spark.sources.log.kafka_log import KafkaLog  # needs the client

        return KafkaLog(self._options, schema)


class KafkaSource(Source):
    """The data source ``slackwater-kafka``."""

    FORMAT, OPTIONS, READER = "slackwater-kafka", KafkaOptions, KafkaReader
    _options: KafkaOptions

    def schema(self) -> str:
        if self._options.value == "json":
            raise UsageError("JSON has no types: give the columns with .schema('…')")
        kind = "binary" if self._options.value == "bytes" else "string"
        extra = [f"`{name}` {MESSAGE_COLUMNS[name]}" for name in self._options.columns]
        return ", ".join([f"value {kind}", *extra])
