"""What a user may change of an experiment."""

from dataclasses import dataclass

from slackwater import policies
from slackwater.core.errors import UsageError
from slackwater.engines.simulator.arrivals import parse_arrivals
from slackwater.traffic import parse_delays
from slackwater_bench.options import option
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

    workloads: tuple[str, ...] = option(("ysb",), "Of ysb, linear-road, nyc-taxi; comma-separated.")
    policies: tuple[str, ...] = option(
        ALL_POLICIES, "Comma-separated; `default` is the engine's own threads."
    )
    queries: tuple[int, ...] = option((80,), "Counts, such as 20,40,80.")
    nodes: tuple[int, ...] = option((1,), "Counts, such as 1,8.")
    delays: tuple[str, ...] = option(
        ("uniform:0:300ms",), "Such as uniform:0:300ms,zipf:0.99:300ms."
    )
    arrivals: str = option(
        "even",
        "even, or bursts:3:5s:20s: in bursts of 3 times the mean rate, 5 s long, every 20 s, on "
        "average, of each query for itself.",
    )
    seconds: float = option(300.0, "Virtual time of a run; published: 1200.", least=5)
    repeat: int = option(1, "Runs of each, with other seeds; default: 1.", least=1)
    cores: tuple[int, ...] = option((24,), "Of each node; of `mixed` several: 16,64.")
    cold: bool = option(True, "Start with code that is not compiled yet.", flags="--cold/--warm")
    seed: int = option(1, "The same seed gives the same result.")

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
