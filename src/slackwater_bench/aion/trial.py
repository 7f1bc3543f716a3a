"""One trial of approximate queries: a sampler, a workload, delays."""

import random
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from slackwater.core.errors import UsageError
from slackwater.traffic import Traffic
from slackwater_bench.options import option
from slackwater_bench.trial import Trial
from slackwater_bench.workloads.catalog import window_of, workload_class

if TYPE_CHECKING:
    from slackwater_bench.workloads.base import ApproximateWorkload

START_LIMIT_S = 120.0
DRAIN_LIMIT_S = 60.0
JUDGING = 1.0  # the truth of a query takes at most so many times as long as its events do
AROUND_S = 25.0  # a trial takes so much longer than it measures

SETTINGS = {  # of the thesis: network delays, gaps between events
    "CC": ("constant:150ms", "constant"),
    "GG": ("gamma:60:4ms", "gamma:2"),
    "EC": ("exponential:240ms", "constant"),
    "EG": ("exponential:240ms", "gamma:2"),
}


@dataclass(frozen=True, slots=True)
class AionTrial(Trial):
    """What to run. Everything random in it follows from ``seed``."""

    runner: ClassVar[str] = "slackwater_bench.aion.measurement:run"

    sampler: str
    workload: str = "ysb"
    delays: str = "exponential:240ms"
    gaps: str = "gamma:2"
    rate: str = "1000"  # events per second of each query
    queries: int = option(2, "At once, each with phase and seed.", least=1)
    seconds: float = option(30.0, "Measured time of a trial.", least=5)
    warmup_s: float = option(25.0, "Before it; samplers learn.", least=0)
    error: float = option(0.05, "Promised to each result row.")
    confidence: float = option(0.95, "Probability of that.")
    window_s: float | None = option(None, "Seconds; default: the workload's.")
    slide_s: float | None = option(None, "Likewise.")
    policy: str = option("klink", "That admits the batches.")
    shuffle_partitions: int = 2
    options: dict[str, Any] = field(default_factory=dict)  # of the workload
    seed: int = option(1)

    @property
    def label(self) -> str:
        return self.sampler

    @property
    def expected_s(self) -> float:
        return AROUND_S + self.warmup_s + self.seconds

    @property
    def limit_s(self) -> float:
        judging_s = JUDGING * self.queries * self.seconds
        return 60 + START_LIMIT_S + self.warmup_s + self.seconds + DRAIN_LIMIT_S + judging_s

    def workloads(self, start_s: float) -> "dict[str, ApproximateWorkload]":
        """Return the queries by name, each with traffic and phase of its own."""
        from slackwater_bench.workloads.base import ApproximateWorkload

        kind = workload_class(self.workload)
        if not issubclass(kind, ApproximateWorkload):
            raise UsageError(f"{self.workload} has no approximate form")
        window_s, slide_s = window_of(self.workload, self.window_s, self.slide_s)
        chance = random.Random(self.seed)
        found = {}
        for index in range(self.queries):
            traffic = Traffic(
                start_s=start_s,
                rate=self.rate,
                delays=self.delays,
                gaps=self.gaps,
                seed=chance.randrange(1 << 30),
            )
            phase_s = round(chance.uniform(0, slide_s), 3)
            windows = {"window_s": window_s, "slide_s": slide_s, "phase_s": phase_s}
            found[f"q{index:03d}"] = kind(traffic=traffic, **windows, **self.options)
        return found
