"""The queries of a fleet, one record each."""

import threading
import time
from dataclasses import dataclass, field

from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.errors import UsageError
from slackwater.core.model import QueryMetrics, QuerySpec
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.queries.status import Accuracies, QueryStatus
from slackwater.ipc.messages import Accuracy, Note
from slackwater.ipc.questions import QueryEntry

USUAL_WAIT_S = 10.0
WINDOWS_OF_WAIT = 2.5  # a query is served before all others after half of its bound


@dataclass
class Member:
    """One query of the fleet."""

    spec: QuerySpec
    gate: str  # clock, source, none
    writer: DataStreamWriter | None = None  # to start it again; None: it is the user's to start
    query: StreamingQuery | None = None
    ready: threading.Event = field(default_factory=threading.Event)  # reached its first trigger
    stated_wait_s: float | None = None  # max_wait as its user gave it
    stopped: bool = False  # on request
    paused: bool = False  # for want of CPU or by hand; it is started again
    by_hand: bool = False  # it was a person who paused it, and only a person has it go on
    ended: bool = False  # for good: stopped, finished, or failed and not to be started again
    error: str | None = None
    restarts: int = 0  # in all
    attempts: int = 0  # since its last batch

    @property
    def active(self) -> bool:
        return self.query is not None and self.query.isActive


def max_wait_s(stated_s: float | None, deadlines: Deadlines) -> float:
    """The bound on waiting: as stated, else one that leaves its windows time to fill.

    >>> from slackwater.core import Window
    >>> max_wait_s(None, Deadlines()), max_wait_s(None, Deadlines((Window("tumbling", 60, 60),)))
    (10.0, 150.0)
    """
    if stated_s is not None:
        return stated_s
    delays = (stream.watermark_delay_s or 0.0 for stream in deadlines.inputs)
    longest_s = max((window.slide_s for window in deadlines.closing), default=0.0)
    return max(USUAL_WAIT_S, WINDOWS_OF_WAIT * longest_s + max(delays, default=0.0))


def query_spec(
    name: str, priority: float, stated_wait_s: float | None, deadlines: Deadlines
) -> QuerySpec:
    """What the controller is told of a query."""
    spec = QuerySpec(name, priority, max_wait_s(stated_wait_s, deadlines), deadlines)
    if spec.priority < 0:
        raise UsageError(f"{spec.name}: priority must not be negative ({spec.priority})")
    if spec.max_wait_s <= 0:
        raise UsageError(f"{spec.name}: max_wait must be positive ({spec.max_wait_s})")
    return spec


def note(member: Member, accuracy: Accuracies | None, run_id: str | None) -> Note:
    """What the controller cannot know, for those who watch; asks Spark nothing."""
    state: str | None
    if member.paused:
        state = "paused"
    elif member.ended:
        state = "stopped" if member.error is None else "failed"
    else:
        state = None if member.ready.is_set() else "starting"
    return Note(
        gate=member.gate,
        state=state,
        restarts=member.restarts,
        error=member.error,
        accuracy=None if accuracy is None else Accuracy(*accuracy),
        run_id=run_id,
    )


def first_line(text: str) -> str:
    """That says something.

    >>> first_line("An error occurred while calling o7.start.\\n: java.io.IOException: no space")
    'java.io.IOException: no space'
    """
    lines = [line.strip().removeprefix(": ") for line in text.splitlines() if line.strip()]
    if len(lines) > 1 and lines[0].startswith("An error occurred while calling"):  # Py4J's
        return lines[1]
    return lines[0] if lines else "failed"


def query_status(
    member: Member, known: QueryEntry | None, accuracy: Accuracies | None = None
) -> QueryStatus:
    metrics = known.metrics if known else QueryMetrics()
    if member.paused:
        state = "paused"
    elif member.error is not None and not member.active:
        state = "failed"
    elif member.query is not None and not member.active:
        state = "stopped"
    elif not member.ready.is_set():
        state = "starting"
    else:
        phase = known.phase if known else "running"
        state = "held" if phase == "waiting" else phase
    newest_s = metrics.max_event_s
    return QueryStatus(
        name=member.spec.name,
        state=state,
        gate=member.gate,
        priority=member.spec.priority,
        waited_s=known.waited_s if known else 0.0,
        batches=metrics.batches,
        rows=metrics.rows,
        input_rate=metrics.arrival_rate,
        lag_rows=metrics.backlog_rows,
        lag_s=max(0.0, time.time() - newest_s) if newest_s is not None else None,
        batch_s=metrics.batch_s,
        state_rows=metrics.state_rows,
        restarts=member.restarts,
        error=member.error,
        accuracy=accuracy,
    )
