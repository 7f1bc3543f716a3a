"""Servers that the sources read from."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kafka_mock import KafkaMock
from tests.redis_server import RedisServer


@pytest.fixture
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    server = RedisServer(tmp_path_factory.mktemp("redis"))
    yield server
    server.kill()


@pytest.fixture
def kafka_mock() -> KafkaMock:
    return KafkaMock()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    """Where a query writes."""
    return tmp_path / "out"
