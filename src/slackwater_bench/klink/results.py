"""What a comparison of policies says, as it goes to JSON (docs/bench-json.md)."""

from typing import Any, TypedDict

Summary = dict[str, float | None]  # mean, p50, p90, p99, max


class Windows(TypedDict):
    """How many windows there were."""

    expected: int
    emitted: int
    wrong: int


class PolicyRun(TypedDict, total=False):
    """One trial; one that failed has ``error`` instead of figures."""

    policy: str
    repeat: int
    queries: int
    seconds: float
    latency_s: Summary
    latencies_s: list[float]
    ideal_s: list[float | None]
    windows: Windows
    throughput_eps: float
    batches: int
    wasted: int
    batch_s: dict[str, Summary]
    cpu_s: float
    controller_cpu_s: float
    driver_share: float | None
    trial: dict[str, Any]  # of PolicyTrial
    error: str


class PolicyResult(TypedDict):
    """All trials of a comparison."""

    workload: str
    query_counts: list[int]
    rate: float | str
    window_s: float
    slide_s: float
    runs: list[PolicyRun]
