"""A streaming source over Kafka topics in Python: no connector jar is needed."""

import json
from collections.abc import Mapping, MutableMapping, Sequence
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from slackwater.core.errors import UsageError
from slackwater.engines.spark.sources.log.kafka_options import MESSAGE_COLUMNS, KafkaOptions, Value
from slackwater.engines.spark.sources.log.loading import load, with_extra
from slackwater.engines.spark.sources.log.log import Log
from slackwater.engines.spark.sources.log.options import Malformed, Start, Timestamps
from slackwater.engines.spark.sources.log.reader import LogReader
from slackwater.engines.spark.sources.log.schemas import check_json_types, parse_schema
from slackwater.engines.spark.sources.sampled_rows import new_plan_path
from slackwater.engines.spark.sources.shed_rows import new_shed_path

FORMAT = "slackwater-kafka"


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
    """A streaming DataFrame of the messages of Kafka topics, one partition a partition of theirs.

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
        plan=new_plan_path() if sampled else None,
        shed=new_shed_path() if sheddable or shed_by or spare else None,
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
    return load(spark, KafkaSource, wanted, options)


class KafkaSource(DataSource):
    """The data source ``slackwater-kafka``."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._kafka = KafkaOptions.from_texts(options)

    def schema(self) -> str:
        if self._kafka.value == "json":
            raise UsageError("JSON has no types: give the columns with .schema('…')")
        kind = "binary" if self._kafka.value == "bytes" else "string"
        extra = [f"`{name}` {MESSAGE_COLUMNS[name]}" for name in self._kafka.columns]
        return ", ".join([f"value {kind}", *extra])

    def streamReader(self, schema: StructType) -> "KafkaReader":
        return KafkaReader(self._kafka, schema)


class KafkaReader(LogReader):
    """Reads messages of Kafka topics."""

    _options: KafkaOptions

    def _open(self, schema: pa.Schema) -> Log:
        from slackwater.engines.spark.sources.log.kafka_log import KafkaLog  # needs the client

        return KafkaLog(self._options, schema)
