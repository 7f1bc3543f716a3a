"""Where the partitions end that Spark's own Kafka source reads, asked once for many queries."""

import threading
from collections.abc import Hashable, Mapping
from collections.abc import Set as AbstractSet

from py4j.java_gateway import JavaObject

from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.sources.spark_kafka import (
    CLIENTS,
    CLOSE_MS,
    Partition,
    Topics,
    client_settings,
    parse_timestamps,
)

FRESH_S = 0.2  # what was asked for so long ago will do for another query
_ISOLATION = "isolation.level"
# Others (a group's name, sizes to fetch) differ between queries, and make no other cluster.
_CONNECTION = ("bootstrap.servers", "client.dns.lookup", "security.", "ssl.", "sasl.", _ISOLATION)


class KafkaCluster:
    """Asks brokers for the ends of partitions, once for all queries that read there.

    Parameters
    ----------
    settings
        Of the connection, and whether transactions that are under way count.
    """

    def __init__(self, execution: JavaObject, settings: Mapping[str, str], clock: Clock) -> None:
        self._topics = Topics(execution, 0, 1, {f"kafka.{k}": v for k, v in settings.items()})
        self._clock = clock
        self._lock = threading.Lock()
        self._closed = False
        self._admin: JavaObject = None
        # What was told since the last round: of who asks no more the topic may be gone.
        self._wanted: set[Partition] = set()
        self._ends: dict[Partition, int] = {}
        self._asked_s: float | None = None  # when the round began

    def ends(self, partitions: frozenset[Partition]) -> frozenset[tuple[Partition, int]]:
        """Return where these partitions end."""
        with self._lock:
            if self._closed:  # who waited for another's question does not put one of its own
                raise EngineError("nobody asks any more")
            now_s = self._clock.monotonic()
            fresh = self._asked_s is not None and now_s - self._asked_s < FRESH_S
            if not fresh:
                wanted, self._wanted = self._wanted | partitions, set()
                self._ends, self._asked_s = self._ask(wanted), now_s
            elif missing := partitions - self._ends.keys():
                self._ends |= self._ask(missing)
            self._wanted |= partitions  # once they were told: one that is gone is its query's alone
            return frozenset((name, self._ends[name]) for name in partitions)

    def close(self) -> None:
        """Ask no more, and let go of the client once the question that is under way has ended."""
        self._closed = True
        with self._lock:
            if self._admin is not None:
                self._admin.close(self._topics.duration(CLOSE_MS))
                self._admin = None

    def _ask(self, partitions: AbstractSet[Partition]) -> dict[Partition, int]:
        java = self._topics.java
        if self._admin is None:
            self._admin = self._topics.admin()
        latest = java(f"{CLIENTS}.admin.OffsetSpec").latest()
        wanted = {self._topics.partition(name): latest for name in partitions}
        levels = java("org.apache.kafka.common.IsolationLevel")
        committed = self._topics.settings.get(_ISOLATION) == "read_committed"
        level = levels.READ_COMMITTED if committed else levels.READ_UNCOMMITTED
        options = java(f"{CLIENTS}.admin.ListOffsetsOptions")(level)
        found = self._admin.listOffsets(wanted, options).all().get().toString()
        return {name: offset for name, (offset, _) in parse_timestamps(found).items()}


class KafkaEnds:
    """Tells whether something has come to the partitions that one query reads.

    Partitions that are added to a topic are not among them before a trigger has found them.
    """

    quick = False

    def __init__(
        self, cluster: KafkaCluster, execution: JavaObject, place: int, places: int
    ) -> None:
        self._cluster = cluster
        self._topics = Topics(execution, place, places, {})
        self._partitions: frozenset[Partition] = frozenset()

    def mark(self) -> Hashable:
        """Return where the partitions end."""
        partitions = self._partitions or frozenset(self._topics.read())
        if not partitions:
            raise EngineError("no partition has been read yet")
        self._partitions = partitions
        return self._cluster.ends(partitions)

    def rows_left(self) -> int | None:
        """Return how many offsets lie between what was read and the ends.

        More than there are rows where transactions and compaction leave gaps.
        """
        read = self._topics.read()
        if not read:
            return None
        return sum(max(0, end - read[name]) for name, end in self._cluster.ends(frozenset(read)))

    def forget(self) -> None:
        """Find out anew which partitions are read."""
        self._partitions = frozenset()


def connection(options: Mapping[str, str]) -> dict[str, str]:
    """Return what tells one cluster from another, out of a source's options.

    >>> connection({"kafka.bootstrap.servers": "a:9092", "kafka.group.id": "g"})
    {'bootstrap.servers': 'a:9092'}
    """
    found = client_settings(options)
    return {name: text for name, text in found.items() if name.startswith(_CONNECTION)}
