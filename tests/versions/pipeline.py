"""The query of ``fleet.toml`` in the test that kills its driver."""

from pyspark.sql import DataFrame, SparkSession

from tests.versions.files import counts


def counted(spark: SparkSession, folder: str) -> DataFrame:
    return counts(spark, folder)
