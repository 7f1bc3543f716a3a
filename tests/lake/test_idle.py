"""A Delta table at S3 to which nothing comes: what it costs to know."""

from collections import Counter

import pytest
from pyspark.sql import SparkSession

from slackwater.core.clock import RealClock
from slackwater.engines.spark.gates.clock import execution_of
from slackwater.engines.spark.sources.arrivals import ArrivalsFinder, DeltaLog
from tests.lake import jars
from tests.lake.conftest import EVENTS
from tests.lake.s3_server import S3Server
from tests.lake.tables import append, copy
from tests.waiting import eventually

pytestmark = pytest.mark.lake


def test_one_request_tells_whether_something_has_come(
    spark: SparkSession, s3: S3Server, events: str
) -> None:
    place = f"s3a://{jars.BUCKET}/idle"
    copy(spark, events, place)
    query = spark.readStream.format("delta").load(place).writeStream.format("noop").start()
    try:
        execution = execution_of(query._jsq)
        eventually(lambda: execution.sources() is not None and query.lastProgress is not None)
        query.processAllAvailable()
        (shared,) = ArrivalsFinder(RealClock()).find(execution)
        source = shared._source  # type: ignore[attr-defined]
        assert isinstance(source, DeltaLog)
        query.stop()  # its triggers would count
        assert source.mark() == EVENTS - 1
        before = s3.requests("idle")
        assert [source.mark() for _ in range(5)] == [EVENTS - 1] * 5
        assert s3.requests("idle") - before == Counter(HEAD=5)
        append(spark, place, EVENTS)
        append(spark, place, EVENTS + 1)
        assert source.mark() == EVENTS + 1
    finally:
        query.stop()
