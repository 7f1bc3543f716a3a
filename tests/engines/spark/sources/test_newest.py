"""A query without a watermark tells how old its rows are."""

from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from slackwater.engines.spark.fleet import Fleet
from slackwater.spark import observe_newest
from tests.waiting import eventually

pytestmark = pytest.mark.spark


def lag_s(fleet: Fleet, name: str) -> float | None:
    return next(query.lag_s for query in fleet.status().queries if query.name == name)


def test_its_lag_is_known(spark: SparkSession, make_fleet: Callable[..., Fleet]) -> None:
    fleet = make_fleet("klink")
    rows = spark.readStream.format("rate").load()
    fleet.start(observe_newest(rows, "timestamp").writeStream.format("noop"), name="told")
    fleet.start(rows.writeStream.format("noop"), name="untold")
    eventually(lambda: lag_s(fleet, "told") is not None, 60)
    assert 0.0 <= (lag_s(fleet, "told") or 0.0) < 60.0
    assert lag_s(fleet, "untold") is None
