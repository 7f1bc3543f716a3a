"""Servers that the sources read from; tests are skipped where their client is missing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from slackwater_bench.kafka_broker import KafkaBroker
    from tests.kafka_mock import KafkaMock
    from tests.redis_server import RedisServer


@pytest.fixture
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    pytest.importorskip("redis")
    from tests.redis_server import RedisServer

    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def kafka_mock() -> KafkaMock:
    """The client library's mock cluster: not Kafka."""
    pytest.importorskip("confluent_kafka")
    from tests.kafka_mock import KafkaMock

    return KafkaMock()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A real broker."""
    from slackwater_bench import kafka_broker

    if (missing := kafka_broker.why_missing()) is not None:
        pytest.skip(missing)
    broker = kafka_broker.KafkaBroker(tmp_path_factory.mktemp("kafka"))
    yield broker
    broker.stop()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a query writes."""
    return tmp_path / "out"
