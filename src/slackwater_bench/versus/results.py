"""The topics that engines write their windows to, one for each query."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from slackwater.core.errors import EngineError
from slackwater_bench.versus.judge import Written

_ANSWER_S = 30.0
_AT_ONCE = 10_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Results:
    """Makes the topics and reads them.

    Parameters
    ----------
    address
        Of the broker.
    queries
        Their names.
    """

    def __init__(self, address: str, queries: Sequence[str]) -> None:
        self.rows: dict[str, list[Written]] = {name: [] for name in queries}
        self._queries = {topic_of(name): name for name in queries}
        # A row has the time at which the broker took it, by one clock for all.
        settings = {"message.timestamp.type": "LogAppendTime"}
        topics = [NewTopic(topic, 1, 1, config=settings) for topic in self._queries]
        admin = AdminClient({"bootstrap.servers": address, "log_level": 0})
        for made in admin.create_topics(topics).values():
            made.result(_ANSWER_S)
        self._consumer = Consumer(
            {"bootstrap.servers": address, "group.id": "judge", "log_level": 0}
        )
        self._consumer.assign([TopicPartition(topic, 0, 0) for topic in self._queries])

    def close(self) -> None:
        """Read no more."""
        self._consumer.close()

    def silent(self) -> list[str]:
        """Return the queries that have written nothing yet."""
        return [
            name
            for topic, name in self._queries.items()
            if self._consumer.get_watermark_offsets(TopicPartition(topic, 0), _ANSWER_S)[1] == 0
        ]

    def read(self, seconds: float) -> None:
        """Take all that has come since, and what comes meanwhile."""
        messages: list[Message] | None = None
        while messages is None or len(messages) == _AT_ONCE:
            messages = self._consumer.consume(_AT_ONCE, seconds)
            for message in messages:
                if (error := message.error()) is not None:
                    raise EngineError(f"the results cannot be read: {error.str()}")
                self._take(message)

    def _take(self, message: Message) -> None:
        row = json.loads(message.value() or b"")
        written = Written(
            message.timestamp()[1] / 1000, _micros(row["window_end"]), row["ad_id"], row["count"]
        )
        self.rows[self._queries[message.topic() or ""]].append(written)


def topic_of(query: str) -> str:
    """Return the topic of a query's results."""
    return f"results-{query}"


@lru_cache
def _micros(text: str) -> int:
    """Read an ISO time.

    >>> _micros("1970-01-01T00:00:01.5Z"), _micros("1970-01-01T01:00:00.000+01:00")
    (1500000, 0)
    """
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)
