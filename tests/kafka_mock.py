"""The mock cluster of the Kafka client library. It is not Kafka: it speaks a part of its protocol.

The cluster lives inside the producer that made it and dies with it; other processes reach it by its
address. Topics come into being when they are first written to, with four partitions.
"""

from collections.abc import Sequence

from confluent_kafka import Producer


class KafkaMock:
    """One broker on loopback."""

    PARTITIONS = 4

    def __init__(self) -> None:
        self._producer = Producer({"test.mock.num.brokers": 1, "log_level": 2})
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.address = f"{broker.host}:{broker.port}"

    def send(
        self,
        topic: str,
        values: Sequence[bytes | None],
        *,
        partition: int | None = None,
        key: bytes | None = None,
    ) -> None:
        """Write values, in turn to all partitions unless one is given."""
        for number, value in enumerate(values):
            place = number % self.PARTITIONS if partition is None else partition
            self._producer.produce(topic, value=value, key=key, partition=place)
            self._producer.poll(0)
        assert self._producer.flush(30) == 0
