"""A policy in the simulator, and what every policy must keep."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from slackwater import policies
from slackwater.core import Controller, Schedule, Snapshot, VirtualClock
from slackwater.core.entities import Operator
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.policies import Policy
from slackwater.traffic import Traffic

START_S = 1_700_000_000.0  # any moment will do
SEED = 3  # of policies that draw

MakePolicy = str | Callable[..., Policy]  # a name, ``module:Class`` or a class


class Event(NamedTuple):
    """What a query does from a moment on: it is waiting at its gate, running or idle."""

    at_s: float  # since the start
    query: str
    what: str


@dataclass(frozen=True, slots=True)
class Simulation:
    """What came of a policy in the simulator."""

    log: tuple[Event, ...]
    latencies_s: dict[str, list[float]]  # of each query's windows: result less end
    longest_wait_s: float  # of any query at its gate


def simulated_query(number: int, **options: Any) -> SimulatedQuery:
    """Make one query of a fleet: windows of 3 s, each query's at times of its own.

    Parameters
    ----------
    options
        Fields of ``SimulatedQuery``, and ``rate``: events/s.
    """
    traffic = Traffic(start_s=START_S, rate=str(options.pop("rate", 200)), seed=number)
    usual: dict[str, Any] = {"phase_s": 0.37 * number % 3, "costs": BatchCosts(poll_s=0.05)}
    return SimulatedQuery(name=f"q{number}", traffic=traffic, **(usual | options))


def simulate(
    policy: MakePolicy,
    queries: int | Sequence[SimulatedQuery] = 8,
    seconds: float = 60.0,
    *,
    slots: int = 2,
) -> Simulation:
    """Run a fleet under a policy for so many virtual seconds.

    Parameters
    ----------
    policy
        Its name, ``module:Class``, or the class itself.
    queries
        How many of :func:`simulated_query`, or the queries themselves.
    slots
        How many micro-batches may run at once; admitting more is an error.
    """
    fleet = [simulated_query(n) for n in range(queries)] if isinstance(queries, int) else queries
    clock, chosen = VirtualClock(START_S), _make(policy)
    engine = MicroBatchEngine(clock, fleet, slots=slots, gated=chosen.gated)
    controller = Controller(engine, _Checked(chosen), engine, clock)
    controller.run(lambda: clock.now() >= START_S + seconds)
    latencies_s: dict[str, list[float]] = {query.name: [] for query in fleet}
    for result in engine.results:
        latencies_s[result.query].append(result.latency_s)
    log = tuple(Event(round(at_s - START_S, 6), name, what) for at_s, name, what in engine.log)
    return Simulation(log, latencies_s, engine.longest_wait_s)


class _Checked:
    """A policy whose every admission is looked at."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def decide(self, snapshot: Snapshot) -> Schedule:
        schedule = self._policy.decide(snapshot)
        waiting = {query.name for query in snapshot.waiting}
        admitted: set[str] = set()
        for admission in schedule.admissions:
            name = admission.query
            assert name not in admitted, f"{name!r} is admitted twice in one decision"
            assert name in waiting, f"{name!r} is admitted, but no query of that name waits"
            assert admission.reason, f"{name!r} is admitted without a reason, which explain shows"
            admitted.add(name)
        return schedule


def _make(policy: MakePolicy) -> Policy:
    if isinstance(policy, str):
        return policies.load(policy, seed=SEED)
    return policy(seed=SEED)


def check_policy(policy: MakePolicy) -> None:
    """Check all that every policy must keep."""
    for check in POLICY_CHECKS:
        check(policy)


def serves_everyone_within_the_slots(policy: MakePolicy) -> None:
    """Admit each query sometimes, and never more at once than there are slots."""
    for slots in (1, 3):
        log = simulate(policy, _fleet(9, max_wait_s=60.0), 60, slots=slots).log
        admitted = {event.query for event in log if event.what == "running"}
        assert len(admitted) == 9, f"with {slots} slots only {sorted(admitted)} ever ran"


def never_starves_a_query(policy: MakePolicy) -> None:
    """Let no query wait beyond its ``max_wait``."""
    waited_s = simulate(policy, _fleet(12, max_wait_s=6.0), 120).longest_wait_s
    assert waited_s <= 6.0, f"a query waited for {waited_s:.1f} s, its maximum is 6 s"


def decides_the_same_with_the_same_seed(policy: MakePolicy) -> None:
    """Draw from ``self.seed`` alone and read no clock, so that runs can be repeated."""
    first, second = (simulate(policy, _fleet(6, max_wait_s=9.0), 20) for _ in range(2))
    differing = [pair for pair in zip(first.log, second.log, strict=False) if pair[0] != pair[1]]
    assert first.log == second.log, f"two runs differ first in {differing[:1]}"


def takes_an_empty_fleet(policy: MakePolicy) -> None:
    """Admit nobody where nobody waits."""
    assert _make(policy).decide(Snapshot(0.0, 2)).admissions == ()


def weighs_every_operator(policy: MakePolicy) -> None:
    """Give each operator a finite priority, for engines that are steered through the kernel."""
    operators = (
        Operator("source", "q", downstream=("map",), source=True),
        Operator("map", "q", downstream=("sink",)),
        Operator("sink", "q"),
        Operator("other", "p"),
    )
    made = _make(policy)
    figures = {key: {"map": 2.0, "sink": 1.0, "other": 9.0} for key in made.metrics}
    found = made.priorities(operators, figures, 5.0).of
    missing = {operator.name for operator in operators} - found.keys()
    assert not missing, f"no priority for {sorted(missing)}"
    assert all(math.isfinite(value) for value in found.values()), f"not finite: {found}"


def has_a_name(policy: MakePolicy) -> None:
    """Have the name that users write: ``name = "longest-queue"``."""
    name = _make(policy).name
    assert name, 'set name = "…" in the class'
    assert ":" not in name, f"{name!r}: a colon is for module:Class"


POLICY_CHECKS: tuple[Callable[[MakePolicy], None], ...] = (
    has_a_name,
    takes_an_empty_fleet,
    serves_everyone_within_the_slots,
    never_starves_a_query,
    decides_the_same_with_the_same_seed,
    weighs_every_operator,
)


def _fleet(count: int, max_wait_s: float) -> list[SimulatedQuery]:
    """Make a fleet of three priorities."""
    return [
        simulated_query(number, priority=1 + number % 3, max_wait_s=max_wait_s)
        for number in range(count)
    ]
