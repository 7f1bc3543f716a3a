"""Engines that the tests of drivers look at."""

from collections.abc import Iterator
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater_bench.flink import LocalFlink, SqlClient, find_flink
from tests.spark_streams import spark_streams


@pytest.fixture(scope="module")
def flink() -> Iterator[LocalFlink]:
    try:
        find_flink()
    except UsageError as error:
        pytest.skip(str(error))
    with LocalFlink(slots=10) as running:
        yield running


@pytest.fixture(scope="module")
def flink_sql(flink: LocalFlink) -> Iterator[SqlClient]:
    with SqlClient(flink.rest) as client:
        yield client


@pytest.fixture(scope="module")
def streams() -> Iterator[dict[str, Any]]:
    with spark_streams() as running:
        yield running
