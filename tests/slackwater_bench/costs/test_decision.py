"""Timing of decisions: all policies can be timed, and the figures say of what."""

import pytest

from slackwater import policies
from slackwater_bench.costs.decision import measure, table


@pytest.mark.parametrize("policy", policies.names())
def test_every_policy_can_be_timed(policy: str) -> None:
    result = measure(policy, queries=30, repeats=3)
    assert (result["policy"], result["queries"]) == (policy, 30)
    assert 0 < result["milliseconds"]["p50"] <= result["milliseconds"]["max"]
    assert table(result).row_count == 2
