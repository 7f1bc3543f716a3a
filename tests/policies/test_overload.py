"""More to do than bounds on waiting leave time for."""

import pytest

from slackwater import policies
from slackwater.core import QuerySpec, Snapshot
from tests.policies.fleet_script import START, Scripted, run, windows


@pytest.mark.parametrize("name", ["klink", "fcfs"])
def test_bounds_are_stretched_before_gates_would_open_all_at_once(name: str) -> None:
    """Each round of all takes longer than the bound on waiting that they were given."""
    policy = policies.load(name)
    fleet = [
        Scripted(QuerySpec(f"q{n}", max_wait_s=3.0, deadlines=windows(3.0)), batch_s=0.5)
        for n in range(40)
    ]
    run(policy, fleet, 60)
    told_s = policy.decide(Snapshot(START + 60, 3, tuple(q.state for q in fleet))).hold_s
    longest_s = max(max(query.gaps_s(START + 20)) for query in fleet)
    assert longest_s > 3.0
    assert longest_s < told_s < 5 * longest_s


def test_an_easy_load_stretches_nothing() -> None:
    policy = policies.load("klink")
    fleet = [Scripted(QuerySpec(f"q{n}", deadlines=windows(3.0))) for n in range(3)]
    run(policy, fleet, 20)
    told_s = policy.decide(Snapshot(START + 20, 3, tuple(q.state for q in fleet))).hold_s
    assert told_s < 3.0
