"""Arms as users type them."""

import pytest

from slackwater.core import UsageError
from slackwater.policies import Policy
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.rivals import RIVALS, arms

BASE = PolicyTrial("", queries=3)


class Patient(Policy):
    """A user's own, which takes no seed."""

    name = "patient"

    def __init__(self, seconds: float, how: str = "quietly") -> None:
        super().__init__()
        self.seconds = seconds

    def _rank(self, waiting, snapshot):  # type: ignore[no-untyped-def]
        return ()


def test_spark_in_all_its_forms_is_never_held() -> None:
    found = {arm.name: arm for arm in arms(list(RIVALS), BASE)}
    assert {arm.trial.policy for arm in found.values()} == {"spark"}
    assert found["spark"].trial.profile == "stock"
    assert found["spark-tuned"].trial.profile == "tuned"
    assert found["spark-fair"].trial.fair
    assert [name for name, arm in found.items() if arm.swept] == ["spark-trigger"]


def test_a_given_interval_needs_no_sweep() -> None:
    (arm,) = arms(["spark-trigger:1.5"], BASE)
    assert (arm.trial.trigger_s, arm.swept, arm.name) == (1.5, False, "spark-trigger:1.5")


def test_parameters_reach_a_policy_of_ours_and_of_users() -> None:
    own = "tests.slackwater_bench.test_rivals:Patient:seconds=2.5:how=loudly"
    ours, theirs = arms(["random-order:seed=4", own], BASE)
    assert (ours.trial.policy, ours.trial.parameters) == ("random-order", {"seed": 4})
    assert theirs.trial.policy == "tests.slackwater_bench.test_rivals:Patient"
    assert theirs.trial.parameters == {"seconds": 2.5, "how": "loudly"}


def test_an_arm_named_twice_runs_once() -> None:
    assert [arm.name for arm in arms(["fcfs", "spark", "fcfs"], BASE)] == ["fcfs", "spark"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fcsf", "Did you mean 'fcfs'?"),
        ("fcfs:patience=3", "unknown key 'patience'"),
        ("spark-trigger:soon", "a number of seconds, not 'soon'"),
        ("spark-trigger:0", "must lie between"),
        ("spark-trigger:nan", "must lie between"),
    ],
)
def test_what_cannot_be_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        arms([name], BASE)
    assert message in str(caught.value)


def test_no_arm_at_all_is_refused() -> None:
    with pytest.raises(UsageError, match="at least one"):
        arms([], BASE)
