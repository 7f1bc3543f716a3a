"""What is compared, and under which load."""

from dataclasses import dataclass, field
from math import pow
from typing import Any

from slackwater.core.errors import UsageError

OS = "os"  # the arm in which nothing is steered
ENGINES = ("flink", "spark", "both")
WORKLOADS = ("synthetic", "etl", "linear-road", "stats", "voip-stream")


@dataclass(frozen=True, kw_only=True)
class LachesisSettings:
    """One run: engines and queries are started once, then the arms take turns."""

    engine: str = "flink"
    workload: str = "synthetic"
    arms: tuple[str, ...] = (OS, "queue-size")
    queries: int = 6  # of each engine
    rate: float = 500.0  # rows per second of each
    skew: float = 0.0  # the n-th query has rate ÷ n to this power
    work: int = 400  # of synthetic operators
    blocking: bool = False
    translator: str = "nice"
    translator_parameters: dict[str, Any] = field(default_factory=dict)
    scale: str | None = None  # of priorities; none: the policy's
    period_s: float = 1.0
    slice_s: float = 20.0  # of one arm in one round
    settle_s: float = 6.0  # of that, until it counts
    rounds: int = 3
    warmup_s: float = 15.0
    seed: int = 1
    flink_conf: dict[str, str] = field(default_factory=dict)  # Flink's, beyond our own
    nodes: int = 1  # of Flink; every query has a copy of each operator on each
    apart: bool = False  # every query of Spark in an application of its own

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise UsageError(f"--engine takes {', '.join(ENGINES)}, not {self.engine!r}")
        if self.workload not in WORKLOADS:
            raise UsageError(f"--workload takes {', '.join(WORKLOADS)}, not {self.workload!r}")
        if self.settle_s >= self.slice_s:
            raise UsageError("--settle must be shorter than --slice")
        if self.nodes not in (1, 2) or (self.nodes == 2 and self.engine != "flink"):
            raise UsageError("--nodes takes 1, or 2 on Flink")
        if self.apart and self.engine == "flink":
            raise UsageError("--apart is for Spark")
        if self.blocking and self.engine != "spark":
            raise UsageError("--blocking is for Spark: Flink's SQL has no function that blocks")

    def rate_of(self, number: int) -> int:
        """Rows per second of one query.

        >>> [LachesisSettings(rate=900, skew=1).rate_of(n) for n in range(3)]
        [900, 450, 300]
        """
        return max(1, round(self.rate / pow(number + 1, self.skew)))
