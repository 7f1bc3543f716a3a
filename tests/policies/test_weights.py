"""Policies weigh operators of engines that are steered through the kernel."""

from slackwater import policies
from slackwater.core.entities import Operator

OPERATORS = (
    Operator("source", "q", downstream=("map",), source=True),
    Operator("map", "q", downstream=("sink",)),
    Operator("sink", "q"),
    Operator("other", "p"),
)


def weights(name: str, **metrics: dict[str, float]) -> dict[str, float]:
    named = {key.replace("_", "-"): values for key, values in metrics.items()}
    return dict(policies.load(name).priorities(OPERATORS, named, 10.0).of)


def test_queue_size_goes_by_rows_and_a_source_has_none() -> None:
    found = weights("queue-size", queue_size={"map": 30.0, "sink": 5.0, "other": 0.0})
    assert found == {"source": 0.0, "map": 30.0, "sink": 5.0, "other": 0.0}


def test_fcfs_goes_by_age() -> None:
    assert weights("fcfs", head_age={"map": 3.0, "sink": 4.0})["sink"] == 4.0


def test_highest_rate_puts_the_unknown_first_and_sources_last() -> None:
    found = weights("highest-rate", highest_rate={"map": 3.0, "sink": 100.0})
    assert found == {"source": 3.0, "map": 3.0, "sink": 100.0, "other": 100.0}
    assert policies.load("highest-rate").scale == "log"


def test_random_order_draws_anew_each_time_and_the_same_for_a_seed() -> None:
    policy, twin = policies.load("random-order"), policies.load("random-order")
    first = policy.priorities(OPERATORS, {}, 0.0).of
    assert first == twin.priorities(OPERATORS, {}, 0.0).of
    assert first != policy.priorities(OPERATORS, {}, 1.0).of


def test_without_a_figure_of_operators_the_order_of_admission_counts() -> None:
    """Round robin goes by name: p before q."""
    found = weights("round-robin", queue_size={"map": 30.0})
    assert found["other"] > found["map"] == found["sink"]
