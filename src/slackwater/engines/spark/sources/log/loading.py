"""From checked options to a streaming DataFrame."""

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSource
from pyspark.sql.types import DataType, StructType

from slackwater.engines.spark.session.interpreter import use_this_interpreter
from slackwater.engines.spark.sources.knobs import knob_option
from slackwater.engines.spark.sources.log.options import LogOptions
from slackwater.engines.spark.sources.log.schemas import check_event_time, check_unique
from slackwater.engines.spark.sources.sampled_rows import SAMPLE, SAMPLE_TYPE


def with_extra(columns: StructType, extra: Mapping[str, str], options: LogOptions) -> StructType:
    """The user's columns, those that the source adds, and the sample."""
    if options.plan is not None:
        extra = {**extra, SAMPLE: SAMPLE_TYPE}
    found = StructType(list(columns.fields))
    for name, kind in extra.items():
        found.add(name, DataType.fromDDL(kind))
    check_unique(found)
    check_event_time(found, options.event_time)
    return found


def load(
    spark: SparkSession, source: type[DataSource], columns: StructType, options: LogOptions
) -> DataFrame:
    """The rows of a source, which is registered for the session."""
    use_this_interpreter(spark)
    spark.dataSource.register(source)
    reader = spark.readStream.format(source.name()).schema(columns)
    return reader.options(**options.texts() | knob_option(options.knob)).load()
