"""The newest records of a topic, fetched from a consumer that is scripted."""

from types import SimpleNamespace
from typing import Any

from slackwater.engines.spark.sources.spark_kafka import _NewestRecords

Partition = tuple[str, int]
BUSY, MARKS = ("t", 0), ("t", 1)
PATIENCE = 20  # polls


class Records:
    """What a poll brings: one record of each of these partitions."""

    def __init__(self, partitions: list[Partition], at: int) -> None:
        self._partitions, self._at = partitions, at

    def isEmpty(self) -> bool:
        return not self._partitions

    def records(self, partition: Partition) -> Any:
        found = SimpleNamespace(
            offset=lambda: self._at, timestamp=lambda: 0, key=lambda: None, value=lambda: None
        )
        return SimpleNamespace(size=lambda: int(partition in self._partitions), get=lambda _: found)


class Consumer:
    """Of two partitions: one that always has more, one that ends with marks of transactions."""

    def __init__(self) -> None:
        self.polls = 0
        self._assigned: list[Partition] = []
        self._paused: set[Partition] = set()

    def endOffsets(self, partitions: list[Partition], limit: object) -> Any:
        return SimpleNamespace(toString=lambda: "{t-0=100, t-1=100}")

    def assign(self, partitions: list[Partition]) -> None:
        self._assigned = partitions
        self._paused &= set(partitions)  # as Kafka does: who stays assigned stays paused

    def seek(self, partition: Partition, at: int) -> None: ...

    def pause(self, partitions: list[Partition]) -> None:
        self._paused |= set(partitions)

    def resume(self, partitions: list[Partition]) -> None:
        self._paused -= set(partitions)

    def poll(self, limit: object) -> Records:
        self.polls += 1
        assert self.polls < PATIENCE, "it reads the whole topic"
        flowing = [p for p in self._assigned if p == BUSY and p not in self._paused]
        return Records(flowing, at=self.polls)


def test_a_partition_without_records_does_not_have_the_others_read_for_ever() -> None:
    consumer = Consumer()
    topics: Any = SimpleNamespace(
        settings={},
        read=lambda: {BUSY: 0, MARKS: 0},
        partition=lambda name: name,
        duration=lambda milliseconds: milliseconds,
        java=lambda name: lambda settings: consumer,
    )
    newest = _NewestRecords(topics, lambda record: float(record.offset))
    assert newest.newest_us() == 1_000_000
    assert newest.newest_us() == 1_000_000 * (consumer.polls - 1), "it is looked at again"
