"""Nothing lost, nothing doubled: the whole driver killed in mid-run and started again."""

from collections import Counter
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.engines.spark.sources.log.copying import CopyProcess
from tests.engines.spark.sources.log.running import commits, written
from tests.kafka_mock import KafkaMock
from tests.redis_server import RedisProducer, RedisServer
from tests.waiting import eventually

pytestmark = pytest.mark.spark

ROWS = 6_000


def test_with_redis_killed_too(spark: SparkSession, redis_server: RedisServer, out: Path) -> None:
    producer = RedisProducer(redis_server, ["a", "b"], ROWS)
    driver = CopyProcess("redis", redis_server.url, out)
    driver.start()
    producer.start()
    try:
        eventually(lambda: commits(out) >= 4, limit_s=90)
        driver.kill()
        assert written(spark, out).total() < ROWS, "killed too late to show anything"
        redis_server.kill()
        redis_server.start()
        driver.start()
        eventually(lambda: written(spark, out).total() >= ROWS, limit_s=120, pause_s=0.5)
    finally:
        driver.kill()
    assert written(spark, out) == Counter(range(ROWS))


def test_with_the_mock_cluster(spark: SparkSession, kafka_mock: KafkaMock, out: Path) -> None:
    kafka_mock.send("t", [b'{"number": %d}' % number for number in range(ROWS)])
    driver = CopyProcess("kafka", kafka_mock.address, out)
    driver.start()
    try:
        eventually(lambda: commits(out) >= 4, limit_s=90)
        driver.kill()
        assert written(spark, out).total() < ROWS, "killed too late to show anything"
        driver.start()
        eventually(lambda: written(spark, out).total() >= ROWS, limit_s=120, pause_s=0.5)
    finally:
        driver.kill()
    assert written(spark, out) == Counter(range(ROWS))
