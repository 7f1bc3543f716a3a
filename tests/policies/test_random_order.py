"""Random order: seeded, and fair in the long run."""

from collections import Counter

from slackwater import policies
from slackwater.core import QuerySpec, QueryState, Snapshot

QUERIES = tuple(QueryState(QuerySpec(f"q{i}", max_wait_s=100), "waiting", 9.9) for i in range(4))
VIEW = Snapshot(10.0, 1, QUERIES)


def draws(seed: int, number: int) -> list[str]:
    policy = policies.load("random-order", seed=seed)
    return [policy.decide(VIEW).admissions[0].query for _ in range(number)]


def test_the_same_seed_draws_the_same() -> None:
    assert draws(1, 20) == draws(1, 20)
    assert draws(1, 20) != draws(2, 20)


def test_everyone_is_drawn_about_equally_often() -> None:
    counts = Counter(draws(3, 400))
    assert len(counts) == 4
    assert min(counts.values()) > 60


def test_the_order_of_the_snapshot_does_not_matter() -> None:
    turned = Snapshot(10.0, 4, tuple(reversed(QUERIES)))
    whole = Snapshot(10.0, 4, QUERIES)
    first, second = (policies.load("random-order", seed=5).decide(v) for v in (turned, whole))
    assert first == second
