"""What every policy must keep, whoever wrote it. New policies are found by their file."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from slackwater import policies, testing
from slackwater.core import (
    Admission,
    Controller,
    EngineError,
    QuerySpec,
    QueryState,
    Schedule,
    SlackwaterError,
    Snapshot,
    UsageError,
    VirtualClock,
)
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.policies import Policy
from slackwater.testing import policies as checks

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


class Inventive(Policy):
    """Admits a query that is not there."""

    name = "inventive"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return [Admission("q99", "made up")]


class Doubling(Policy):
    """Admits a query twice."""

    name = "doubling"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return [Admission(waiting[0].name, "first"), Admission(waiting[0].name, "again")]


class Silent(Policy):
    """Gives no reason."""

    name = "silent"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return [Admission(waiting[0].name, "")]


class Forgetful(Policy):
    """Forgot to return what it ranked."""

    name = "forgetful"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        sorted(waiting, key=lambda query: query.name)  # type: ignore[return]


class Naming(Policy):
    """Gives names where admissions are wanted."""

    name = "naming"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return [query.name for query in waiting]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Inventive, "'q99' is admitted, but no query of that name waits"),
        (Doubling, "'q0' is admitted twice in one decision"),
        (Silent, "'q0' is admitted without a reason, which explain shows"),
        (Forgetful, "forgetful: _rank returned None; yield an Admission for each query"),
        (Naming, "naming: _rank gave 'q0', which is no Admission"),
    ],
)
def test_the_checks_name_the_mistake(policy: type[Policy], message: str) -> None:
    with pytest.raises((AssertionError, SlackwaterError), match=message):
        testing.check_policy(policy)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (Inventive, "the policy admits 'q99', which is no query of this fleet"),
        (Doubling, "the policy admits 'q0', which is running; only those that wait can be"),
    ],
)
def test_the_simulator_names_the_mistake(policy: type[Policy], message: str) -> None:
    clock = VirtualClock(testing.START_S)
    engine = MicroBatchEngine(clock, [testing.simulated_query(0)], slots=2)
    with pytest.raises(EngineError, match=message):
        Controller(engine, policy(), engine, clock).run(lambda: clock.now() > testing.START_S + 9)


@pytest.mark.parametrize(
    ("policy", "check"),
    [
        (Greedy, checks.serves_everyone_within_the_slots),
        (Starving, checks.serves_everyone_within_the_slots),
        (Starving, checks.never_starves_a_query),
        (Moody, checks.decides_the_same_with_the_same_seed),
        (Nameless, checks.has_a_name),
        (Nameless, checks.weighs_every_operator),
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


class Homemade(Policy):
    """Keeps things under names of its own, and does not call the constructor of its base."""

    name = "homemade"

    def __init__(self) -> None:
        self._first = self._measure = self._hold_s = self._round_s = self._measured_s = "mine"

    def _rank(self, waiting: Sequence[QueryState], snapshot: Snapshot) -> Iterable[Admission]:
        return [Admission(query.name, self._first) for query in waiting]


def test_names_of_a_member_s_own_are_not_in_the_way() -> None:
    policy, states = Homemade(), (QueryState(QuerySpec("a"), "waiting"),)
    decided = policy.decide(Snapshot(1.0, 1, states))
    assert [(each.query, each.reason) for each in decided.admissions] == [("a", "mine")]
    assert (policy._hold_s, policy._round_s, policy._measured_s) == ("mine",) * 3
