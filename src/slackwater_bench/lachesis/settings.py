"""What is compared, and under which load."""

from dataclasses import dataclass
from math import pow
from typing import Any

from slackwater.core.errors import UsageError
from slackwater_bench.options import option

OS = "os"  # the arm in which nothing is steered
ENGINES = ("flink", "spark", "both")
WORKLOADS = ("synthetic", "etl", "linear-road", "stats", "voip-stream")


@dataclass(frozen=True, kw_only=True)
class LachesisSettings:
    """One run: engines and queries are started once, then the arms take turns."""

    engine: str = option("flink", "flink, spark or both.")
    workload: str = option("synthetic", f"{', '.join(WORKLOADS)}.")
    arms: tuple[str, ...] = option(
        (OS, "queue-size", "fcfs", "highest-rate"),
        "Comma-separated; os is the kernel's default.",
        flags="--policies",
    )
    queries: int = option(6, "Of each engine.", least=1)
    rate: float = option(500.0, "Rows/s of each query.", least=0.001)
    skew: float = option(0.0, "The n-th has rate ÷ n to this power.", least=0)
    work: int = option(400, "Mean cost of synthetic operators.", least=1)
    blocking: bool = option(False, "Some operators block now and then.")
    translator: str = option("nice", "nice, cpu-shares, shares-nice, …")
    translator_parameters: dict[str, Any] = option(
        dict, "Of the translator, key=value: best=-10.", flags="--option"
    )
    scale: str | None = option(None, "Of priorities: linear, log, ratio; default: the policy's.")
    period_s: float = option(1.0, "Seconds between decisions.", least=0.01)
    slice_s: float = option(20.0, "Seconds of an arm in a round.")
    settle_s: float = option(6.0, "Of these, until it counts.")
    rounds: int = option(3, "Arms take turns in each.", least=1)
    warmup_s: float = option(15.0, "Before the first round.", least=0)
    nodes: int = option(1, "2: a CPU, a network and a middleware for each.", least=1, most=2)
    apart: bool = option(False, "Every query of Spark in an application of its own.")
    flink_conf: dict[str, str] = option(dict, "Of Flink, key=value; may be repeated.")
    seed: int = option(1)

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
        """Return rows per second of one query.

        >>> [LachesisSettings(rate=900, skew=1).rate_of(n) for n in range(3)]
        [900, 450, 300]
        """
        return max(1, round(self.rate / pow(number + 1, self.skew)))
