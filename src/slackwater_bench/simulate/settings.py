"""What a user may change of an experiment."""

from collections.abc import Sequence
from dataclasses import dataclass

from slackwater import policies
from slackwater.core.errors import UsageError
from slackwater.engines.simulator.arrivals import parse_arrivals
from slackwater.traffic import parse_delays
from slackwater_bench.simulate.fleets import SHAPES
from slackwater_bench.simulate.trial import DEFAULT

ALL_POLICIES = (
    "default",
    "round-robin",
    "fcfs",
    "highest-rate",
    "streambox",
    "klink-no-memory",
    "klink",
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Of one run of an experiment. What is wrong shows at once, not after minutes.

    >>> Settings(workloads=("yahoo",))
    Traceback (most recent call last):
    slackwater.core.errors.UsageError: unknown workload 'yahoo'; known: ysb, linear-road, nyc-taxi
    """

    workloads: Sequence[str] = ("ysb",)
    policies: Sequence[str] = ALL_POLICIES
    queries: Sequence[int] = (80,)
    delays: Sequence[str] = ("uniform:0:300ms",)
    arrivals: str = "even"
    seconds: float = 300.0  # of virtual time
    repeat: int = 1
    nodes: Sequence[int] = (1,)
    cores: int = 24  # of each node
    cold: bool = True
    seed: int = 1

    def __post_init__(self) -> None:
        for workload in self.workloads:
            if workload not in SHAPES:
                raise UsageError(f"unknown workload {workload!r}; known: {', '.join(SHAPES)}")
        for policy in self.policies:
            if policy != DEFAULT:
                policies.load(policy)
        for delays in self.delays:
            parse_delays(delays)
        parse_arrivals(self.arrivals)
