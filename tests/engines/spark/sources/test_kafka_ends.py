"""Ends of partitions, asked once for many queries; the brokers are pretended."""

from collections.abc import Set as AbstractSet
from typing import Any

import pytest

from slackwater.core import EngineError, VirtualClock
from slackwater.engines.spark.sources.kafka_ends import KafkaCluster, KafkaEnds
from slackwater.engines.spark.sources.spark_kafka import Partition, Topics

A, B = ("a", 0), ("b", 0)


class Brokers(KafkaCluster):
    """Answers with what was put into it; a topic that is not there fails the whole question."""

    def __init__(self, clock: VirtualClock) -> None:
        nobody: Any = None
        super().__init__(nobody, {}, clock)
        self.there: dict[Partition, int] = {A: 0, B: 0}
        self.questions: list[set[Partition]] = []

    def _ask(self, partitions: AbstractSet[Partition]) -> dict[Partition, int]:
        self.questions.append(set(partitions))
        return {name: self.there[name] for name in partitions}


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock()


@pytest.fixture
def brokers(clock: VirtualClock) -> Brokers:
    return Brokers(clock)


def both(brokers: Brokers) -> None:
    brokers.ends(frozenset({A}))
    brokers.ends(frozenset({B}))


def test_one_question_is_for_all_that_asked_lately(clock: VirtualClock, brokers: Brokers) -> None:
    both(brokers)
    for _ in range(3):
        clock.sleep(1.0)
        both(brokers)
    assert brokers.questions == [{A}, {B}, {A, B}, {A, B}, {A, B}]


@pytest.mark.parametrize("queries", [1, 2, 3, 6, 20])
def test_many_topics_are_one_question_a_round(
    clock: VirtualClock, brokers: Brokers, queries: int
) -> None:
    """In the first round nobody knows yet what the others will ask for."""
    topics = [(f"topic-{number}", 0) for number in range(queries)]
    brokers.there |= dict.fromkeys(topics, 0)
    rounds = []
    for _ in range(4):
        before = len(brokers.questions)
        for topic in topics:
            assert brokers.ends(frozenset({topic})) == {(topic, 0)}
        rounds.append(len(brokers.questions) - before)
        clock.sleep(1.0)
    assert rounds == [queries, 1, 1, 1]
    assert brokers.questions[-1] == set(topics)


def test_a_query_whose_topic_is_gone_fails_alone(clock: VirtualClock, brokers: Brokers) -> None:
    for _ in range(3):
        clock.sleep(1.0)
        assert brokers.ends(frozenset({A})) == {(A, 0)}
        with pytest.raises(KeyError):
            brokers.ends(frozenset({("gone", 0)}))
        assert brokers.ends(frozenset({B})) == {(B, 0)}


def test_another_end_is_another_mark(clock: VirtualClock, brokers: Brokers) -> None:
    before = brokers.ends(frozenset({A}))
    brokers.there[A] = 1
    clock.sleep(1.0)
    assert brokers.ends(frozenset({A})) != before


def test_a_topic_of_somebody_who_asks_no_more_is_forgotten(
    clock: VirtualClock, brokers: Brokers
) -> None:
    both(brokers)
    del brokers.there[B]
    clock.sleep(1.0)
    with pytest.raises(KeyError):
        brokers.ends(frozenset({A}))
    assert brokers.ends(frozenset({A})) == {(A, 0)}
    assert brokers.questions[-1] == {A}


def test_who_reads_no_partition_yet_tells_nothing(
    brokers: Brokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A topic that appears later changes no mark of nothing."""
    read: dict[Partition, int] = {}
    monkeypatch.setattr(Topics, "read", lambda topics: read)
    nobody: Any = None
    ends = KafkaEnds(brokers, nobody, 0, 1)
    with pytest.raises(EngineError, match="no partition"):
        ends.mark()
    read[A] = 0
    assert ends.mark() == {(A, 0)}
