"""One Spark with all jars, and one server for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.lake import jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.lake.s3_server import S3Server

EVENTS = 10  # versions of the table of events


@pytest.fixture(scope="session")
def s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    why_not = jars.why_not()
    if why_not is not None:
        pytest.skip(why_not)
    from tests.lake.s3_server import S3Server

    server = S3Server(tmp_path_factory.mktemp("s3"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def spark(s3: S3Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    from slackwater.engines.spark.session.session import session

    warehouse = str(tmp_path_factory.mktemp("warehouse"))
    running = session("lake", "local[2]", conf=jars.settings(s3.address, warehouse))
    running.sparkContext.setLogLevel("OFF")
    yield running
    running.stop()


@pytest.fixture(scope="session")
def events(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A Delta table on this machine."""
    from tests.lake.tables import append

    place = str(tmp_path_factory.mktemp("events") / "table")
    for number in range(EVENTS):
        append(spark, place, number)
    return place
