"""Fixtures shared by all tests, and the markers that follow from them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# No test depends on how fast the machine is.
settings.register_profile("any", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("any")

# Whoever uses one of these fixtures, directly or through another, needs what the marker names.
MARKER_OF_FIXTURE = {
    "spark": "spark",
    "streams": "spark",
    "flink": "flink",
    "redis_server": "server",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark tests by the fixtures they use."""
    for item in items:
        for fixture in MARKER_OF_FIXTURE.keys() & set(getattr(item, "fixturenames", ())):
            item.add_marker(MARKER_OF_FIXTURE[fixture])


@pytest.fixture
def tmp_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a folder with a short name: the path of a Unix socket has at most 107 characters."""
    return tmp_path_factory.mktemp("t")


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let times of day be the same wherever the test runs."""
    with monkeypatch.context() as here:
        here.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One small local Spark for the whole test run."""
    from slackwater.engines.spark.session.session import session

    conf = {"spark.sql.shuffle.partitions": "2", "spark.sql.session.timeZone": "UTC"}
    running = session("slackwater-tests", "local[2]", conf=conf)
    running.sparkContext.setLogLevel("OFF")
    yield running
    running.stop()
