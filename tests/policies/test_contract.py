"""What every policy must keep, whoever wrote it. New policies are found by their file."""

from pathlib import Path

import pytest

from slackwater import policies
from slackwater.core import Snapshot, UsageError
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.policies import Policy
from tests.simulated import query, simulate

NAMES = policies.names()


def run(
    name: str, *, queries: int, slots: int, max_wait_s: float, seconds: float
) -> MicroBatchEngine:
    fleet = [query(i, priority=1 + i % 3, max_wait_s=max_wait_s) for i in range(queries)]
    return simulate(name, fleet, seconds, slots=slots)[0]  # the engine checks C


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("slots", [1, 3])
def test_never_admits_more_than_the_slots_and_serves_everyone(name: str, slots: int) -> None:
    engine = run(name, queries=9, slots=slots, max_wait_s=60, seconds=60)
    admitted = {query for _, query, phase in engine.log if phase == "running"}
    assert admitted == {f"q{i}" for i in range(9)}


@pytest.mark.parametrize("name", NAMES)
def test_never_starves_beyond_the_maximum_wait(name: str) -> None:
    engine = run(name, queries=12, slots=2, max_wait_s=6.0, seconds=120)
    assert engine.longest_wait_s <= 6.0


class Unfair(Policy):
    """Would let only one query in, ever."""

    name = "unfair"

    def _rank(self, waiting, snapshot):  # type: ignore[no-untyped-def]
        from slackwater.core import Admission

        return (Admission(q.name, "favourite") for q in waiting if q.name == "q0")


def test_even_an_unfair_policy_cannot_starve_a_query() -> None:
    engine = run(
        "tests.policies.test_contract:Unfair", queries=5, slots=1, max_wait_s=6, seconds=90
    )
    assert 2.9 < engine.longest_wait_s <= 6.0


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_decisions(name: str) -> None:
    first, second = (run(name, queries=6, slots=2, max_wait_s=9, seconds=20) for _ in range(2))
    assert first.log == second.log


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_fleet_is_no_problem(name: str) -> None:
    assert policies.load(name).decide(Snapshot(0.0, 2)).admissions == ()


def test_every_file_is_a_policy() -> None:
    files = {path.stem for path in Path(policies.__file__).parent.glob("[a-z]*.py")} - {"base"}
    assert {name.replace("-", "_") for name in NAMES} == files


def test_names_are_what_users_write() -> None:
    for name in NAMES:
        assert policies.load(name).name == name


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fcsf", "Did you mean 'fcfs'?"),
        ("nowhere:Policy", "no module named 'nowhere'"),
        ("math:sqrt", "is not a policy"),
        ("slackwater.policies.fcfs:Fcsf", "Did you mean 'Fcfs'?"),
    ],
)
def test_a_wrong_name_is_one_clear_line(name: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        policies.load(name)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_wrong_parameter_is_one_clear_line() -> None:
    with pytest.raises(UsageError, match="unknown key 'sed'; did you mean 'seed'"):
        policies.load("fcfs", sed=3)
