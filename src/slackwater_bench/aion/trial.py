"""One trial of approximate queries: a sampler, a workload, delays."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from slackwater.core.errors import UsageError
from slackwater_bench.options import option
from slackwater_bench.trial import Trial
from slackwater_bench.workloads.catalog import make_workloads, window_of, workload_class

if TYPE_CHECKING:
    from slackwater_bench.workloads.base import ApproximateWorkload

START_LIMIT_S = 120.0
DRAIN_LIMIT_S = 60.0
JUDGING = 1.0  # the truth of a query takes at most so many times as long as its events do

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
    arm_field: ClassVar[str] = "sampler"

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
    def expected_s(self) -> float:
        return self.around_s + self.warmup_s + self.seconds

    @property
    def limit_s(self) -> float:
        return self.expected_s + self.patience_s + JUDGING * self.queries * self.seconds

    def __post_init__(self) -> None:
        self._kind()

    def _kind(self) -> "type[ApproximateWorkload]":
        from slackwater_bench.workloads.base import ApproximateWorkload

        kind = workload_class(self.workload)
        if not issubclass(kind, ApproximateWorkload):
            raise UsageError(f"{self.workload} has no approximate form")
        return kind

    def workloads(self, start_s: float) -> "dict[str, ApproximateWorkload]":
        """Return the queries by name, each with traffic and phase of its own."""
        window_s, slide_s = window_of(self.workload, self.window_s, self.slide_s)
        return make_workloads(
            self._kind(),
            self.queries,
            self.seed,
            lambda chance: round(chance.uniform(0, slide_s), 3),
            {"window_s": window_s, "slide_s": slide_s} | self.options,
            start_s=start_s,
            rate=self.rate,
            delays=self.delays,
            gaps=self.gaps,
        )
