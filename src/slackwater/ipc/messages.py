"""What gates, controllers and those who ask say to each other, as types.

A gate says ``spec`` (what a query is), ``arrive`` (it is at its gate), ``done`` (its batch has
ended), ``gone`` (it has terminated), ``progress`` (what Spark reported), ``history`` (of batches
before), ``told`` (what another part of the query has seen), ``inputs`` (which queries have some),
``memory``, ``insinks`` and ``notes``.
The controller says ``grant``, ``command`` and, when it has said nothing for a moment, ``beat``.
Anyone of the same user may ``ask``, see :mod:`slackwater.ipc.questions`.

A peer may say more than is known here; what is known must fit. JSON has no word for infinity: it
travels as ``null``.
"""

import math
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from slackwater.core.model import Outlook, QuerySpec, Sweep
from slackwater.core.windows import Deadlines, InputStream, Window, WindowKind
from slackwater.ipc.framing import Decoder, ProtocolError
from slackwater.ipc.progress import Count, QueryProgress

# Windows are not shorter than Spark's finest interval.
Length = Annotated[float, Meta(ge=1e-6)] | None
Positive = Annotated[float, Meta(ge=0.0)] | None


INPUTS_LAST_S = 12.0  # for so long is believed what was told of inputs, if nobody says it again

S = TypeVar("S", bound=Struct)


class Message(Struct, frozen=True, tag_field="op", tag=str.lower):
    """One line between two processes; its class is told by ``op``."""


# -- what a query is ------------------------------------------------------------------------------


class WindowFields(Struct, frozen=True):
    """A window; a length that is ``None`` is infinite."""

    kind: WindowKind
    size_s: Length
    slide_s: Length
    offset_s: float = 0.0
    time_column: str = ""
    inputs: tuple[Count, ...] = ()

    def window(self) -> Window:
        size_s, slide_s = _or_infinite(self.size_s), _or_infinite(self.slide_s)
        return Window(self.kind, size_s, slide_s, self.offset_s, self.time_column, self.inputs)


class DeadlinesFields(Struct, frozen=True):
    """The windows of a query and their inputs."""

    windows: tuple[WindowFields, ...]
    inputs: tuple[InputStream, ...]
    output_mode: str


class SpecFields(Struct, frozen=True):
    """A query's specification; a number that is ``None`` is infinite, but for the target."""

    name: str
    priority: Positive
    max_wait_s: Positive
    deadlines: DeadlinesFields
    keep_open_s: Positive = 0.0
    pace_s: Positive = 0.0
    target_s: float | None = None
    one_batch: bool | UnsetType = UNSET
    trigger_s: float | UnsetType | None = UNSET
    idle_after_s: float | UnsetType | None = UNSET

    def spec(self) -> QuerySpec:
        """Return it as all others know it."""
        found = self.deadlines
        windows = tuple(each.window() for each in found.windows)
        return QuerySpec(
            name=self.name,
            priority=_or_infinite(self.priority),
            max_wait_s=_or_infinite(self.max_wait_s),
            deadlines=Deadlines(windows, found.inputs, found.output_mode),
            keep_open_s=_or_infinite(self.keep_open_s),
            pace_s=_or_infinite(self.pace_s),
            target_s=self.target_s,
            one_batch=self.one_batch is True,
            trigger_s=self.trigger_s or None,
            idle_after_s=self.idle_after_s or None,
        )


class Spec(Message, frozen=True):
    """What a query is. The fields of :class:`SpecFields` lie flat beside its name."""

    query: str
    name: str
    priority: Positive
    max_wait_s: Positive
    deadlines: DeadlinesFields
    keep_open_s: Positive = 0.0
    pace_s: Positive = 0.0
    target_s: float | None = None
    one_batch: bool | UnsetType = UNSET
    trigger_s: float | UnsetType | None = UNSET
    idle_after_s: float | UnsetType | None = UNSET

    def __post_init__(self) -> None:
        if self.name != self.query:
            raise ValueError(f"{self.query!r} and {self.name!r} cannot both be its name")

    def spec(self) -> QuerySpec:
        """Return it as all others know it."""
        return copy_fields(self, SpecFields).spec()


def spec_fields(spec: QuerySpec) -> SpecFields:
    """Return a specification as it travels inside an answer."""
    found = spec.deadlines
    windows = tuple(copy_fields(each, WindowFields) for each in found.windows)
    deadlines = DeadlinesFields(windows, found.inputs, found.output_mode)
    return msgspec.structs.replace(
        copy_fields(spec, SpecFields),
        deadlines=deadlines,
        one_batch=spec.one_batch or UNSET,
        trigger_s=UNSET if spec.trigger_s is None else spec.trigger_s,
        idle_after_s=UNSET if spec.idle_after_s is None else spec.idle_after_s,
    )


def spec_message(spec: QuerySpec) -> Spec:
    """Return a specification as it travels by itself.

    >>> spec = QuerySpec("q", 2.0, 5.0, Deadlines((Window("tumbling", 3.0, 3.0),)))
    >>> spec_message(spec).spec() == spec
    True
    """
    return Spec(spec.name, *msgspec.structs.astuple(spec_fields(spec)))


def copy_fields(source: object, kind: type[S]) -> S:
    """Return a structure with the attributes of that name; they are not checked."""
    return kind(*[getattr(source, name) for name in kind.__struct_fields__])


# -- what gates say -------------------------------------------------------------------------------


class Arrive(Message, frozen=True):
    """A query is at its gate, for the so-manieth time.

    A clock gate tells with it the progress of the batch before, the watermarks that come, and what
    waits where offsets do not tell; a source gate knows nothing of that.
    """

    query: str
    seq: Count
    progress: QueryProgress | UnsetType | None = UNSET
    watermark_ms: Count | UnsetType | None = UNSET
    input_watermarks_ms: tuple[Count, ...] | UnsetType = UNSET
    again: bool | UnsetType = UNSET  # it was granted and goes on waiting: nothing has happened
    backlog_rows: Positive | UnsetType = UNSET  # that a limit has left over, about


class Done(Message, frozen=True, omit_defaults=True):
    """The batch of a query has ended, perhaps a while ago."""

    query: str
    at: float | None = None


class Gone(Message, frozen=True):
    """A query has terminated."""

    query: str


class Progress(Message, frozen=True):
    """What Spark reported of a query whose gate does not."""

    query: str
    progress: QueryProgress


class History(Message, frozen=True):
    """The last batches of a query, oldest first, for a controller that knows none."""

    query: str
    batches: tuple[QueryProgress, ...]


class Told(Message, frozen=True, omit_defaults=True):
    """What another part of the query, on another worker perhaps, has seen or will cost."""

    query: str
    sweep: Sweep | None = None
    beyond: Outlook | None = None


class MemoryUse(Message, frozen=True, tag="memory"):
    """Bytes of the driver's heap, and of the executors' storage (0 with a local master)."""

    used: Count
    limit: Count
    executors: Count
    cores: Count | UnsetType = UNSET  # that there are now, where slots follow them


class InSinks(Message, frozen=True):
    """Those whose batches only wait for their sinks, as long as nothing else is said."""

    queries: tuple[str, ...]


class Inputs(Message, frozen=True, omit_defaults=True):
    """Which queries at their gates have input, as their sources say; of others nobody knows.

    It is said again and again: who hears nothing for a while believes it no more.
    """

    empty: tuple[str, ...] = ()  # there is nothing beyond what was read
    filled: tuple[str, ...] = ()
    asked: Count = 0  # questions so far
    asking_s: float = 0.0  # CPU time that they took, about


class Accuracy(Struct, frozen=True):
    """How much of its input a query processes."""

    minimum: float
    desired: float
    current: float | None = None
    delivered: float | None = None


class TableNote(Struct, frozen=True):
    """How stale a table is; its age follows from the time at which somebody looks."""

    every_s: float | None = None  # how old it may become; None: it is refreshed once
    refreshed_s: float | None = None  # when its last run that succeeded began
    failures: int = 0  # in a row


class Note(Struct, frozen=True):
    """What only the fleet knows of a query."""

    run_id: str | None = None
    state: str | None = None  # where it is not the controller's to tell
    gate: str | None = None
    restarts: int = 0
    error: str | None = None
    accuracy: Accuracy | None = None
    why_two_batches: str | None = None  # a window, where one would do
    table: TableNote | UnsetType = UNSET  # of one that is refreshed by runs


class Notes(Message, frozen=True, omit_defaults=True):
    """What only the fleet knows, for those who watch."""

    app_name: str | None = None
    gate: str | None = None
    notes: dict[str, Note] = {}


# -- what the controller says ---------------------------------------------------------------------


class Grant(Message, frozen=True):
    """One micro-batch may run; ``seq`` is that of the arrival, so that a stale one is known."""

    query: str
    seq: Count
    rows: Count | None = None  # at most; None: as many as there are
    watermark_ms: Count | UnsetType = UNSET  # that its batch must run with, or it waits on


class Beat(Message, frozen=True, omit_defaults=True):
    """The controller lives, and says whether gates are to be open."""

    open: bool
    hold_s: float = 0.0  # no gate opens by itself before it has held for so long


class Command(Message, frozen=True):
    """Somebody told the controller something that concerns the fleet."""

    action: str
    query: str | UnsetType = UNSET
    policy: str | UnsetType = UNSET


class Answer(Message, frozen=True):
    """To a question; its value is read by who knows what was asked."""

    value: msgspec.Raw


FromGate = (
    Spec | Arrive | Done | Gone | Progress | History | Told | Notes | MemoryUse | InSinks | Inputs
)
FromController = Grant | Beat | Command | Answer

_from_controller: Decoder[FromController] = Decoder(FromController)


def read_from_controller(line: bytes) -> FromController:
    """Read what a gate, or anyone who asked, hears."""
    return _from_controller.decode(line)


def read_windows(found: Any) -> tuple[Window, ...]:
    """Read windows that came through JSON; refuse what is none."""
    try:
        fields = msgspec.convert(found, tuple[WindowFields, ...])
    except msgspec.ValidationError as error:
        raise ProtocolError(str(error)) from None
    return tuple(each.window() for each in fields)


def _or_infinite(number: float | None) -> float:
    return math.inf if number is None else number
