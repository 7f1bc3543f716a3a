"""Few queries and many are served in the same order."""

import math

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from slackwater.policies._due_queries import Entry, LoopedDueQueries, VectorDueQueries

times = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.inf])
entries = st.builds(
    Entry,
    overdue_s=times,
    due_s=times,
    drain_s=times,
    since_s=st.floats(0, 3),
    urgency_s=st.sampled_from([0.0, 0.5, 1.0]),
    lowness=st.sampled_from([-2.0, -1.0]),
    rank=st.sampled_from([0, 1, 2]),
    worth=st.sampled_from([1.0, 3.0]),
    cost_s=st.sampled_from([0.1, 0.3]),
    ripe_s=st.sampled_from([0.0, 1.0]),
)


@given(st.lists(entries, max_size=8), st.floats(-1, 4))
def test_a_loop_and_vectors_give_the_same_answers(rows: list[Entry], now_s: float) -> None:
    short, long = LoopedDueQueries(), VectorDueQueries()
    for place in reversed(range(len(rows))):  # also with gaps
        short.write(place, rows[place])
        long.write(place, rows[place])
    assert short.due(now_s) == long.due(now_s)
    assert short.overdue(now_s) == long.overdue(now_s)
    assert short.to_drain(now_s) == long.to_drain(now_s)
    assert short.next_s() == long.next_s()
    assert short.next_s(now_s) == long.next_s(now_s)
    assert short.first_due_s(1) == long.first_due_s(1)
    assert short.by_worth(now_s) == long.by_worth(now_s)
    assert short.next_due(1, now_s, 2) == long.next_due(1, now_s, 2)


def test_where_work_can_be_interrupted_slack_orders_and_grows_less_with_the_cost() -> None:
    due_queries = VectorDueQueries()
    waits = {"overdue_s": 99.0, "since_s": 1.0, "rank": 1.0}
    due_queries.write(0, Entry(**waits))
    due_queries.write(1, Entry(**waits, growth=0.5, told_s=0.0))
    due_queries.write(2, Entry())  # not at the gate
    slacks = np.array([1.0, 2.0, 0.0])
    assert due_queries.by_slack(slacks, 1.0) == [0, 1]
    assert due_queries.by_slack(slacks, 4.0) == [1, 0]


def test_smith_s_rule_at_the_same_age_and_the_oldest_at_the_same_cost() -> None:
    due_queries = LoopedDueQueries()
    waits = {"overdue_s": 99.0, "due_s": 0.0, "since_s": 0.0}
    due_queries.write(0, Entry(**waits, worth=1.0, cost_s=0.5, ripe_s=1.0))
    due_queries.write(1, Entry(**waits, worth=1.0, cost_s=0.1, ripe_s=1.0))
    due_queries.write(2, Entry(**waits, worth=9.0, cost_s=0.5, ripe_s=1.0))
    due_queries.write(3, Entry(**waits, worth=1.0, cost_s=0.5, ripe_s=0.5))
    assert due_queries.by_worth(2.0) == [2, 1, 3, 0]
