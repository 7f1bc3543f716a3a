"""What every policy must keep, whoever wrote it. New policies are found by their file."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from slackwater import policies, testing
from slackwater.core import (
    Admission,
    QueryState,
    Schedule,
    SlackwaterError,
    Snapshot,
    UsageError,
)
from slackwater.policies import Policy

NAMES = policies.names()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("check", testing.POLICY_CHECKS, ids=lambda check: check.__name__)
def test_every_policy(check: Callable[[str], None], name: str) -> None:
    check(name)


class Unfair(Policy):
    """Would let only one query in, ever."""

    name = "unfair"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return (Admission(q.name, "favourite") for q in waiting if q.name == "q0")


def test_even_an_unfair_policy_cannot_starve_a_query() -> None:
    fleet = [testing.simulated_query(number, max_wait_s=6.0) for number in range(5)]
    assert 2.9 < testing.simulate(Unfair, fleet, 90, slots=1).longest_wait_s <= 6.0


class Greedy(Policy):
    """Admits all that wait, whatever the slots."""

    name = "greedy"

    def decide(self, snapshot: Snapshot) -> Schedule:
        return Schedule(tuple(Admission(query.name, "all") for query in snapshot.waiting))

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return ()


class Starving(Unfair):
    """Drops what the base class keeps."""

    def decide(self, snapshot: Snapshot) -> Schedule:
        chosen = self._rank(snapshot.waiting, snapshot)
        return Schedule(tuple(chosen)[: snapshot.free_slots])


class Moody(Policy):
    """Decides by what an earlier run left behind."""

    name = "moody"
    runs = 0

    def __init__(self, seed: int = 0) -> None:
        super().__init__(seed)
        type(self).runs += 1

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        order = sorted(waiting, key=lambda query: query.name, reverse=self.runs % 2 == 0)
        return (Admission(query.name, "mood") for query in order)


class Nameless(Policy):
    """Forgot its name, and weighs nothing."""

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return ()

    def _weigh(self, operators: object, metrics: object, now_s: float) -> dict[str, float]:
        return {}


@pytest.mark.parametrize(
    ("policy", "check"),
    [
        (Greedy, testing.serves_everyone_within_the_slots),
        (Starving, testing.serves_everyone_within_the_slots),
        (Starving, testing.never_starves_a_query),
        (Moody, testing.decides_the_same_with_the_same_seed),
        (Nameless, testing.has_a_name),
        (Nameless, testing.weighs_every_operator),
    ],
)
def test_the_checks_see_what_is_broken(
    policy: type[Policy], check: Callable[[type[Policy]], None]
) -> None:
    with pytest.raises((AssertionError, SlackwaterError)):
        check(policy)


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
