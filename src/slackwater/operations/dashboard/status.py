"""What a controller answers becomes the documented JSON of ``/status``."""

from typing import Any

from msgspec import UNSET, Struct, UnsetType, field

from slackwater.core.model import Figures, Memory
from slackwater.ipc.messages import Accuracy, Note, TableNote
from slackwater.ipc.questions import MetricsView, QueryView, Watched

ADMITTED_S = 0.1  # so long after its grant Spark may still be planning: a batch shows no beginning


class ControllerStatus(Struct, frozen=True):
    """What a controller costs."""

    since_s: float
    cpu_s: float
    cycles: int


class FleetStatus(Struct, frozen=True):
    """A fleet that answers, or did."""

    name: str
    state: str  # dry-run, open, holding, unheld, silent
    app_name: str
    policy: str
    gate: str | None
    slots: int
    extra_slots: int
    let_through: int
    opened: int
    asked: int  # questions to sources of queries that had found nothing
    asking_s: float  # CPU time that those took
    running: int
    memory: Memory | None
    controller: ControllerStatus
    error: str | UnsetType | None = UNSET  # why it is silent


class SilentFleet(Struct, frozen=True):
    """A fleet that has not answered yet."""

    name: str
    error: str | None
    state: str = "silent"

    @property
    def app_name(self) -> str:
        """Its name, until it says another."""
        return self.name


class QueryStatus(Struct, frozen=True):
    """A query, under Spark's own names where it has one."""

    name: str
    run_id: str | None = field(name="runId")
    fleet: str
    worker: str | None
    app_name: str
    state: str
    stage: str | None
    since_s: float | None
    waited_s: float
    waits: str | None
    priority: float | None
    max_wait_s: float | None
    target_s: float | None
    kept: int | None
    broken: int | None
    gate: str | None
    admissions: int
    restarts: int
    error: str | None
    slack_s: float | None
    window_end_s: float | None
    sweep_s: float | None
    sweep_low_s: float | None
    sweep_high_s: float | None
    cost_s: float | None
    batches: int
    rows: int
    input_rows_per_second: float | None = field(name="inputRowsPerSecond")
    processed_rows_per_second: float | None = field(name="processedRowsPerSecond")
    batch_duration_ms: float | None = field(name="batchDuration")
    watermark_gap_s: float | None
    lag_rows: float | None
    lag_s: float | None
    state_rows: int | None
    state_bytes: int | None
    rows_dropped_by_watermark: int | None = field(name="numRowsDroppedByWatermark")
    why_two_batches: str | None
    accuracy: Accuracy | None
    shed_rate: float | None
    age_s: float | None
    every_s: float | None
    failures: int
    latencies_s: tuple[float, ...] = ()


class Status(Struct, frozen=True):
    """Everything that is watched, at a moment."""

    at_s: float
    fleets: tuple[FleetStatus | SilentFleet, ...] = ()
    queries: tuple[QueryStatus, ...] = ()
    middlewares: tuple[dict[str, Any], ...] = ()


def fleet_status(name: str, answer: Watched) -> FleetStatus:
    """Show a fleet that answers."""
    return FleetStatus(
        name=name,
        state="dry-run" if answer.dry_run else "open" if answer.open else _holding(answer),
        app_name=answer.app_name or name,
        policy=answer.policy,
        gate=answer.gate,
        slots=answer.slots,
        extra_slots=answer.extra_slots,
        let_through=answer.let_through,
        opened=answer.opened,
        asked=answer.asked,
        asking_s=answer.asking_s,
        running=sum(query.phase == "running" for query in answer.queries),
        memory=answer.memory,
        controller=ControllerStatus(answer.epoch, answer.cpu_s, answer.cycles),
    )


def _holding(answer: Watched) -> str:
    """Tell whether queries are held; the guard may have seen that it does harm."""
    return "unheld" if answer.unheld else "holding"


def query_statuses(fleet: str, answer: Watched) -> list[QueryStatus]:
    """Show its queries; the fleet's notes alone know those that have ended or not begun."""
    seen = {query.name: query for query in answer.queries}
    names = [*seen, *(name for name in answer.notes if name not in seen)]
    return [_query(fleet, name, seen.get(name), answer) for name in names]


def _query(fleet: str, name: str, seen: QueryView | None, answer: Watched) -> QueryStatus:
    now_s, note = answer.now_s, answer.notes.get(name, Note())
    outlook = answer.outlook.get(name)
    figures = outlook or Figures("")
    metrics = seen.metrics if seen else MetricsView()
    delivered = note.accuracy.delivered if note.accuracy else None
    held = seen is not None and seen.phase == "waiting"
    table = note.table or TableNote()
    return QueryStatus(
        name=name,
        run_id=note.run_id,
        fleet=fleet,
        worker=fleet.partition(".")[2] or None,  # as `slackwater fleet` names its workers
        app_name=answer.app_name or fleet,
        state=note.state or state(seen, answer.open, now_s),
        stage=outlook.stage if outlook else None,
        since_s=seen.since_s if seen else None,
        waited_s=now_s - seen.since_s if seen and held else 0.0,
        waits=seen.waits if seen and held else None,
        priority=seen.priority if seen else None,
        max_wait_s=seen.max_wait_s if seen else None,
        target_s=seen.target_s if seen else None,
        kept=seen.kept if seen else None,
        broken=seen.broken if seen else None,
        gate=note.gate,
        admissions=seen.admissions if seen else 0,
        restarts=note.restarts,
        error=note.error,
        slack_s=figures.slack_s,
        window_end_s=figures.window_end_s,
        sweep_s=figures.arrival_s,
        sweep_low_s=figures.arrival_low_s,
        sweep_high_s=figures.arrival_high_s,
        cost_s=figures.cost_s,
        batches=metrics.batches,
        rows=metrics.rows,
        input_rows_per_second=metrics.arrival_rate,
        processed_rows_per_second=metrics.service_rate,
        batch_duration_ms=None if metrics.batch_s is None else metrics.batch_s * 1000,
        watermark_gap_s=_difference(metrics.batch_start_s, metrics.watermark_s),
        lag_rows=metrics.backlog_rows,
        lag_s=None if metrics.max_event_s is None else max(0.0, now_s - metrics.max_event_s),
        state_rows=metrics.state_rows,
        state_bytes=metrics.state_bytes,
        rows_dropped_by_watermark=metrics.rows_dropped_by_watermark,
        why_two_batches=note.why_two_batches,
        accuracy=note.accuracy,
        shed_rate=_difference(1.0, delivered),
        age_s=_difference(now_s, table.refreshed_s),
        every_s=table.every_s,
        failures=table.failures,
    )


def _difference(whole: float | None, part: float | None) -> float | None:
    return None if whole is None or part is None else whole - part


def state(seen: QueryView | None, is_open: bool, now_s: float) -> str:
    """Tell a query's state in one word.

    >>> def query(phase, since_s=0.0, stage=""):
    ...     return QueryView("q", 1.0, 9.0, None, phase, since_s, None, 0, stage, MetricsView())
    >>> state(query("waiting"), False, 0.0)
    'held'
    >>> running = query("running", 10.0, "emit")
    >>> state(running, False, 10.05), state(running, False, 10.5)
    ('admitted', 'emitting')
    >>> state(query("idle"), True, 0.0)
    'free'
    """
    if is_open:
        return "free"  # nobody holds it, and so nobody knows when its batches begin
    if seen is None or seen.phase == "idle":
        return "idle"
    if seen.phase == "waiting":
        return "held"
    if seen.in_sink:
        return "in sink"
    if now_s - seen.since_s < ADMITTED_S:
        return "admitted"
    return "emitting" if seen.stage == "emit" else "running"
