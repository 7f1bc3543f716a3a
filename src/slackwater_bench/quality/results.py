"""What the benchmarks of quality see, as it goes to JSON (docs/bench-json.md)."""

from typing import Any, TypedDict

Lag = tuple[float, float]  # seconds since the traffic began, and the oldest row's age then
Batch = tuple[float, float, int, int]  # start, duration, rows, rows kept


class SeenQuery(TypedDict):
    """What became of one query of a trial."""

    lags: list[Lag]
    batches: list[Batch]


class SeenRate(TypedDict):
    """A source's rate at one look; accuracies stand beside it where the query has some."""

    rate: float
    rate_estimate: float | None


class TrialSample(TypedDict):
    """One look at a trial."""

    at_s: float
    queries: dict[str, SeenRate]


class QualityRun(TypedDict):
    """One trial."""

    samples: list[TrialSample]
    queries: dict[str, SeenQuery]


class OverloadResult(TypedDict):
    """All arms under too much input."""

    capacity: float  # rows per second
    rate: int
    seconds: float
    runs: dict[str, QualityRun]


class RampResult(TypedDict):
    """Both arms under a rising rate."""

    capacity: float
    step_s: float
    runs: dict[str, QualityRun]


class Delivered(TypedDict):
    """Of a query's accuracies, what came through its shedder."""

    delivered: float | None


class FleetRow(TypedDict):
    """One query at one look of ``slackwater fleet --watch``."""

    query: str
    phase: str
    worker: str
    priority: float
    desired: float | None
    warming: bool
    accuracy: Delivered | None
    rate: float | None
    lag_s: float | None


class FleetEvent(TypedDict):
    """A query that moved or was stopped."""

    at_s: float
    what: str
    query: str
    lacked: float


class WorkerUse(TypedDict):
    """Cores of a worker."""

    used: float | None


class FleetSample(TypedDict):
    """One look of ``slackwater fleet --watch``."""

    at_s: float
    queries: list[FleetRow]
    events: list[FleetEvent]
    workers: dict[str, WorkerUse]


class QueryFile(TypedDict, total=False):
    """A query's section of a fleet file."""

    query: str
    arguments: dict[str, Any]
    priority: float
    min_accuracy: float
    reads: list[str]
    task: str


class Checks(TypedDict):
    """Looks at which a promise was not kept, and what happened besides."""

    looks: int
    decided_below_minimum: int
    measured_below_minimum: int
    higher_priority_shed_first: int
    moves: list[FleetEvent]
    stops: list[FleetEvent]
    moves_without_need: int
    decided_at_the_end: float | None


class ScenarioResult(TypedDict):
    """One scenario, second by second."""

    scenario: int
    rate: float
    step_s: float
    references: int
    queries: dict[str, QueryFile]
    samples: list[FleetSample]
    checks: Checks
    estimated_rate: dict[str, float]
    estimated_rate_settled: dict[str, float]
