"""What a controller answers becomes the documented JSON of ``/status``."""

from typing import Any

from slackwater.ipc.wire import Message

ADMITTED_S = 0.1  # so long after its grant Spark may still be planning: a batch shows no beginning

_NO_METRICS: Message = {}


def fleet_status(name: str, answer: Message) -> dict[str, Any]:
    """A fleet that answers."""
    state = "dry-run" if answer["dry_run"] else "open" if answer["open"] else "holding"
    return {
        "name": name,
        "state": state,
        "app_name": answer.get("app_name") or name,
        "policy": answer["policy"],
        "gate": answer.get("gate"),
        "slots": answer["slots"],
        "running": sum(query["phase"] == "running" for query in answer["queries"]),
        "memory": answer["memory"],
        "controller": {
            "since_s": answer["epoch"],
            "cpu_s": answer["cpu_s"],
            "cycles": answer["cycles"],
        },
    }


def query_statuses(fleet: str, answer: Message) -> list[dict[str, Any]]:
    """Its queries; those that have ended or not begun are known by the fleet's notes alone."""
    notes = answer.get("notes", {})
    seen = {query["name"]: query for query in answer["queries"]}
    names = [*seen, *(name for name in notes if name not in seen)]
    return [_query(fleet, name, seen.get(name), notes.get(name, {}), answer) for name in names]


def _query(
    fleet: str, name: str, seen: Message | None, note: Message, answer: Message
) -> dict[str, Any]:
    now_s, outlook = answer["now_s"], answer["outlook"].get(name, {})
    seen = seen or {}
    accuracy = note.get("accuracy")
    delivered = accuracy["delivered"] if accuracy else None
    return {
        "name": name,
        "runId": note.get("run_id"),
        "fleet": fleet,
        "worker": fleet.partition(".")[2] or None,  # as `slackwater fleet` names its workers
        "app_name": answer.get("app_name") or fleet,
        "state": note.get("state") or state(seen, answer["open"], now_s),
        "stage": outlook.get("stage"),
        "since_s": seen.get("since_s"),
        "waited_s": now_s - seen["since_s"] if seen.get("phase") == "waiting" else 0.0,
        "priority": seen.get("priority"),
        "max_wait_s": seen.get("max_wait_s"),
        "target_s": seen.get("target_s"),
        "gate": note.get("gate"),
        "admissions": seen.get("admissions", 0),
        "restarts": note.get("restarts", 0),
        "error": note.get("error"),
        "slack_s": outlook.get("slack_s"),
        "window_end_s": outlook.get("window_end_s"),
        "sweep_s": outlook.get("arrival_s"),
        "sweep_low_s": outlook.get("arrival_low_s"),
        "sweep_high_s": outlook.get("arrival_high_s"),
        "cost_s": outlook.get("cost_s"),
        **_figures(seen.get("metrics", _NO_METRICS), now_s),
        "accuracy": accuracy,
        "shed_rate": None if delivered is None else 1.0 - delivered,
    }


def _figures(metrics: Message, now_s: float) -> dict[str, Any]:
    """Under Spark's own names where it has one."""
    newest_s: Any = metrics.get("max_event_s")
    watermark_s: Any = metrics.get("watermark_s")
    start_s: Any = metrics.get("batch_start_s")
    batch_s: Any = metrics.get("batch_s")
    return {
        "batches": metrics.get("batches", 0),
        "rows": metrics.get("rows", 0),
        "inputRowsPerSecond": metrics.get("arrival_rate"),
        "processedRowsPerSecond": metrics.get("service_rate"),
        "batchDuration": None if batch_s is None else batch_s * 1000,
        "watermark_gap_s": None if None in (start_s, watermark_s) else start_s - watermark_s,
        "lag_rows": metrics.get("backlog_rows"),
        "lag_s": None if newest_s is None else max(0.0, now_s - newest_s),
        "state_rows": metrics.get("state_rows"),
        "state_bytes": metrics.get("state_bytes"),
    }


def state(seen: Message, is_open: bool, now_s: float) -> str:
    """In one word.

    >>> state({"phase": "waiting"}, False, 0.0)
    'held'
    >>> running = {"phase": "running", "since_s": 10.0, "stage": "emit"}
    >>> state(running, False, 10.05), state(running, False, 10.5)
    ('admitted', 'emitting')
    >>> state({"phase": "idle"}, True, 0.0)
    'free'
    """
    phase = seen.get("phase", "idle")
    if is_open:
        return "free"  # nobody holds it, and so nobody knows when its batches begin
    if phase == "waiting":
        return "held"
    if phase == "running":
        if now_s - seen["since_s"] < ADMITTED_S:
            return "admitted"
        return "emitting" if seen["stage"] == "emit" else "running"
    return "idle"
