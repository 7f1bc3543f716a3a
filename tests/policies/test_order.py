"""The order in which each policy admits, on snapshots written by hand."""

from slackwater import policies
from slackwater.core import QuerySpec, QueryState, Snapshot


def snapshot(waiting: dict[str, float], slots: int = 1, running: tuple[str, ...] = ()) -> Snapshot:
    states = [
        QueryState(QuerySpec(name, max_wait_s=100), "waiting", since_s=since)
        for name, since in waiting.items()
    ]
    states += [QueryState(QuerySpec(name), "running") for name in running]
    return Snapshot(10.0, slots, tuple(states))


def admitted(policy: policies.Policy, view: Snapshot) -> list[str]:
    return [admission.query for admission in policy.decide(view).admissions]


def test_fcfs_takes_the_longest_waiting_first() -> None:
    policy = policies.load("fcfs")
    assert admitted(policy, snapshot({"a": 9.0, "b": 7.0, "c": 8.0}, slots=2)) == ["b", "c"]


def test_round_robin_goes_round_and_skips_who_is_not_there() -> None:
    policy = policies.load("round-robin")
    assert admitted(policy, snapshot({"a": 9, "b": 9, "d": 9})) == ["a"]
    assert admitted(policy, snapshot({"a": 9, "c": 9, "d": 9})) == ["c"]
    assert admitted(policy, snapshot({"a": 9, "b": 9})) == ["a"]
    assert admitted(policy, snapshot({"a": 9, "b": 9})) == ["b"]


def test_running_batches_take_slots() -> None:
    view = snapshot({"a": 1.0, "b": 2.0}, slots=2, running=("c",))
    assert admitted(policies.load("fcfs"), view) == ["a"]
    assert admitted(policies.load("fcfs"), snapshot({"a": 1.0}, slots=1, running=("c",))) == []


def test_the_overdue_come_before_the_policy_s_own_choice() -> None:
    late = QueryState(QuerySpec("late", max_wait_s=4.0), "waiting", since_s=7.5)
    early = QueryState(QuerySpec("early", max_wait_s=100.0), "waiting", since_s=1.0)
    decision = policies.load("fcfs").decide(Snapshot(10.0, 1, (early, late)))
    assert [a.query for a in decision.admissions] == ["late"]
    assert "close to its maximum" in decision.admissions[0].reason
