"""One trial under more load than the machine can take: queries in one Spark, and an arm."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

from slackwater.core.errors import UsageError
from slackwater_bench.trial import Trial


@dataclass(frozen=True, kw_only=True)
class QueryPlan:
    """One KNN query of a trial."""

    name: str
    rate: str  # of its input, as the feed takes it; seconds count from the trial's start
    priority: float = 1.0
    min_accuracy: float = 0.0
    references: int = 200
    rows_per_batch: int | None = None
    seed: int = 1


@dataclass(frozen=True, kw_only=True)
class QualityTrial(Trial):
    """What runs, and how.

    ``arm`` is ``plain`` (Spark alone, nothing shed), ``fixed:0.4`` (that part is kept, always) or
    ``slackwater``.
    """

    runner: ClassVar[str] = "slackwater_bench.quality.measurement:run"
    around_s: ClassVar[float] = 60.0

    arm: str
    queries: tuple[QueryPlan, ...] = ()
    seconds: float = 60.0  # from the beginning of the traffic
    master: str = "local[2]"
    policy: str = "fcfs"
    # Of QualitySettings. The other arms do not give way to other processes either.
    settings: dict[str, Any] = field(default_factory=lambda: {"counts_others": False})
    cpus: tuple[int, ...] = ()  # that Spark is bound to; none: all

    def __post_init__(self) -> None:
        if self.arm not in ("plain", "slackwater") and not self.arm.startswith("fixed:"):
            raise UsageError(f"unknown arm {self.arm!r}; known: plain, slackwater, fixed:PART")
        plans = (
            each if isinstance(each, QueryPlan) else QueryPlan(**each) for each in self.queries
        )
        object.__setattr__(self, "queries", tuple(plans))  # of JSON they are dictionaries
