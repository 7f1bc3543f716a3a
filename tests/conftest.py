"""Fixtures shared by all tests."""

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from pyspark.sql import SparkSession

from slackwater.engines.spark.session import session

# No test depends on how fast the machine is.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small local Spark for the whole test run."""
    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    running = session("slackwater-tests", "local[2]", conf=conf)
    running.sparkContext.setLogLevel("OFF")
    yield running
    running.stop()
