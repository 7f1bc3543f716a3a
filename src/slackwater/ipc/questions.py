"""What anyone of the same user may ask a controller or a middleware, and what they answer."""

from typing import Literal

import msgspec
from msgspec import UNSET, Struct, UnsetType

from slackwater.core.model import Decision, Figures, Memory, Phase, QueryMetrics
from slackwater.ipc.framing import Decoder, to_json
from slackwater.ipc.messages import Answer, FromGate, Message, Note, SpecFields

# -- questions ------------------------------------------------------------------------------------


class Ask(Message, frozen=True):
    """A question by its name; those that are known have types of their own."""

    what: str


class AskStatus(Message, frozen=True, tag="ask", kw_only=True):
    """Everything that is known of each query."""

    what: Literal["status"] = "status"


class AskDecisions(Message, frozen=True, tag="ask", kw_only=True):
    """The last decisions, newest first."""

    what: Literal["decisions"] = "decisions"
    last: int = 20
    query: str | None = None  # None: of all


class AskWatch(Message, frozen=True, tag="ask", kw_only=True):
    """Everything now, and what happened since the numbers that the asker knows."""

    what: Literal["watch"] = "watch"
    happened: int = 0
    decided: int = 0


class AskCost(Message, frozen=True, tag="ask", kw_only=True):
    """What the controller has used."""

    what: Literal["cost"] = "cost"


class Control(Message, frozen=True, tag="ask", kw_only=True):
    """Switch something: ``on``, ``off``, ``policy``, ``pause``, ``resume``."""

    what: Literal["control"] = "control"
    action: str
    query: str | UnsetType = UNSET
    policy: str | UnsetType = UNSET


class Switch(Message, frozen=True, tag="ask", kw_only=True):
    """Switch a policy of a middleware on, off, or leave that to its conditions (``None``)."""

    what: Literal["switch"] = "switch"
    policy: str
    on: bool | None = None


Question = AskStatus | AskDecisions | AskWatch | AskCost | Control | Switch

# -- answers --------------------------------------------------------------------------------------


class Failure(Struct, frozen=True):
    """A question that could not be answered as asked."""

    error: str | None = None


class Cost(Struct, frozen=True):
    """What the controller has used."""

    cpu_s: float
    cycles: int


class Controlled(Struct, frozen=True):
    """How gates are after a switch."""

    open: bool


class QueryEntry(Struct, frozen=True):
    """All that a controller knows of a query."""

    spec: SpecFields
    phase: Phase
    since_s: float
    admitted_s: float | None
    admissions: int
    metrics: QueryMetrics
    waited_s: float
    in_sink: bool = False
    waits: str | None = None  # why, for people; None: it does not
    kept: int | None = None  # results that kept what was promised; None: nothing was
    broken: int | None = None  # and those that did not


class Status(Struct, frozen=True):
    """All that a controller knows."""

    now_s: float
    slots: int
    open: bool
    memory: Memory | None
    queries: tuple[QueryEntry, ...]


class MetricsView(Struct, frozen=True):
    """The metrics that those see who watch."""

    batches: int = 0
    rows: int = 0
    backlog_rows: float | None = None
    arrival_rate: float | None = None
    service_rate: float | None = None
    batch_s: float | None = None
    batch_start_s: float | None = None
    max_event_s: float | None = None
    watermark_s: float | None = None
    state_rows: int | None = None
    state_bytes: int | None = None
    rows_dropped_by_watermark: int | None = None


class QueryView(Struct, frozen=True):
    """A query as those see it who watch: small, because it is asked for often."""

    name: str
    priority: float | None
    max_wait_s: float | None
    target_s: float | None
    phase: Phase
    since_s: float
    admitted_s: float | None
    admissions: int
    stage: str
    metrics: MetricsView
    kept: int | None = None  # results that kept what was promised; None: nothing was
    broken: int | None = None  # and those that did not
    in_sink: bool = False  # its batch only waits for its sink
    waits: str | None = None  # why it is held, for people; None: it is not


class BatchEvent(Struct, frozen=True, tag_field="kind", tag="batch"):
    """A micro-batch that ran."""

    query: str
    start_s: float | None
    end_s: float
    rows: int
    stage: str


class DecisionEvent(Struct, frozen=True, tag_field="kind", tag="decision"):
    """A decision, beside what else happened."""

    at_s: float
    query: str
    reason: str
    waited_s: float
    waiting: tuple[str, ...]
    running: tuple[str, ...]
    enforced: bool
    figures: Figures | None


class ResultEvent(Struct, frozen=True, tag_field="kind", tag="result"):
    """A window whose result is out."""

    query: str
    end_s: float
    latency_s: float


Event = BatchEvent | ResultEvent


class Watched(Struct, frozen=True):
    """Everything now, and what is new."""

    now_s: float
    slots: int
    open: bool
    memory: Memory | None
    queries: tuple[QueryView, ...]
    app_name: str | None
    gate: str | None
    notes: dict[str, Note]
    epoch: float  # when the controller began; another one counts anew
    policy: str
    dry_run: bool
    cpu_s: float
    cycles: int
    outlook: dict[str, Figures]
    decided: int
    decisions: tuple[Decision, ...]  # oldest first
    happened: int
    events: tuple[Event, ...]
    opened: int = 0  # gates that have opened by themselves, after too long a wait
    extra_slots: int = 0  # given because cores idled while queries waited
    unheld: bool = False  # nobody is held for a while, because that did not help
    let_through: int = 0  # queries that are not held for a while: they had waited too long
    asked: int = 0  # questions to sources of queries that had found nothing
    asking_s: float = 0.0  # CPU time that those took, about


Decisions = tuple[Decision, ...]


def answer(value: object) -> Answer:
    """Return a value as it travels to whoever asked."""
    return Answer(msgspec.Raw(to_json(value)))


# -- reading --------------------------------------------------------------------------------------

_QUESTIONS: dict[str, Decoder[Question]] = {
    "status": Decoder(AskStatus),
    "decisions": Decoder(AskDecisions),
    "watch": Decoder(AskWatch),
    "cost": Decoder(AskCost),
    "control": Decoder(Control),
    "switch": Decoder(Switch),
}
_from_gate_or_ask: Decoder[FromGate | Ask] = Decoder(FromGate | Ask)
_ask: Decoder[Ask] = Decoder(Ask)


def read_from_gate(line: bytes) -> FromGate | Question | Ask:
    """Read what a controller hears: from gates, and from anyone who asks."""
    message = _from_gate_or_ask.decode(line)
    return _question(message, line) if isinstance(message, Ask) else message


def read_question(line: bytes) -> Question | Ask:
    """Read a question; one that is not known stays an :class:`Ask`."""
    return _question(_ask.decode(line), line)


def _question(ask: Ask, line: bytes) -> Question | Ask:
    known = _QUESTIONS.get(ask.what)
    return ask if known is None else known.decode(line)
