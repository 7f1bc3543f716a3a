"""The query of the fleet files here."""

from pyspark.sql import DataFrame, SparkSession

from tests.lake.tables import counts
from tests.versions import files


def counted(spark: SparkSession, source: str) -> DataFrame:
    return counts(spark, source)


def counted_files(spark: SparkSession, source: str) -> DataFrame:
    return files.counts(spark, source)
