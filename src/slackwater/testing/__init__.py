"""For people who write policies, samplers and sources: try one out, and check what each must keep.

``simulate`` runs a policy over a small fleet in virtual time and returns what happened.
``check_policy``, ``check_sampler`` and ``check_source`` raise an ``AssertionError`` that says what
was broken; ``POLICY_CHECKS`` and ``SAMPLER_CHECKS`` are their parts, for one test each::

    @pytest.mark.parametrize("check", testing.POLICY_CHECKS)
    def test_my_policy(check):
        check("mine:LongestQueue")

>>> simulate("fcfs", queries=2, seconds=4).log[:2]
(Event(at_s=0.0, query='q0', what='waiting'), Event(at_s=0.0, query='q1', what='waiting'))
"""

from slackwater.testing.policies import (
    POLICY_CHECKS,
    START_S,
    Event,
    Simulation,
    check_policy,
    simulate,
    simulated_query,
)
from slackwater.testing.samplers import SAMPLER_CHECKS, check_sampler
from slackwater.testing.sources import check_source

__all__ = [
    "POLICY_CHECKS",
    "SAMPLER_CHECKS",
    "START_S",
    "Event",
    "Simulation",
    "check_policy",
    "check_sampler",
    "check_source",
    "simulate",
    "simulated_query",
]
