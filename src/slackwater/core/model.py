"""What a driver reports, what a policy decides, and what is remembered of it.

All times are seconds since the epoch, on whatever clock the controller was given.
"""

from dataclasses import dataclass, field
from functools import cached_property
from math import ceil
from typing import Literal, NamedTuple

from slackwater.core.windows import Deadlines

Phase = Literal["idle", "waiting", "running"]

# A micro-batch plans, commits and waits for its slowest task: it keeps a core busy for less than
# its whole duration. Measured on two cores: three slots beat two and four (docs/klink.md).
SLOTS_PER_CORE = 1.5


@dataclass(frozen=True, slots=True)
class QuerySpec:
    """What is known of a query before it runs."""

    name: str
    priority: float = 1.0  # larger is more important
    max_wait_s: float = 10.0  # no micro-batch waits longer, whatever the policy
    deadlines: Deadlines = field(default_factory=Deadlines)
    keep_open_s: float = 0.0  # a batch that begins sooner after a window's end closes it too early
    pace_s: float = 0.0  # least time between the beginnings of two batches, where CPU is scarce
    target_s: float | None = None  # wanted: latency of its windows, else the age of its results
    one_batch: bool = False  # the batch that reads past a window's end can emit it as well
    trigger_s: float | None = None  # interval of its trigger; None: as soon as it can
    idle_after_s: float | None = None  # an input that is silent for so long holds nothing up

    @property
    def begins_at_once(self) -> bool:
        """Whether its batches may begin at any time, whatever the policy."""
        return self.keep_open_s <= 0 and self.pace_s <= 0

    def kept_open_until_s(self, now_s: float) -> float:
        """Return when a batch may begin: now, or once the windows that have just ended may close.

        >>> from slackwater.core.windows import Window
        >>> window = Window("tumbling", size_s=3.0, slide_s=3.0)
        >>> spec = QuerySpec("q", deadlines=Deadlines((window,)), keep_open_s=0.5)
        >>> spec.kept_open_until_s(6.2), spec.kept_open_until_s(6.6)
        (6.5, 6.6)
        """
        if self.keep_open_s <= 0:
            return now_s
        ends_s = (w.next_end(now_s) - w.slide_s for w in self.deadlines.closing)
        return max([now_s, *(end_s + self.keep_open_s for end_s in ends_s)])


class Sweep(NamedTuple):
    """A watermark that completes a window, as it came."""

    end_s: float  # of the window
    arrived_s: float


class Outlook(NamedTuple):
    """What a result still costs in the parts of a query that lie downstream."""

    fixed_s: float = 0.0
    per_row_s: float = 0.0


NOTHING_BEYOND = Outlook()


class OperatorMetrics(NamedTuple):
    """One step of a query, where the engine shows them."""

    queued: float  # events before it
    selectivity: float  # events out for one in
    cost_s: float  # of one event


@dataclass(frozen=True, slots=True)
class QueryMetrics:
    """What the engine has shown of a query so far; ``None`` is "not known", never zero."""

    batches: int = 0  # micro-batches that ran
    rows: int = 0  # input rows of those
    backlog_rows: float | None = None  # arrived, not yet read
    buffered_rows: float | None = None  # of these, in the engine's memory and not in the source
    arrival_rate: float | None = None  # rows per second that arrive
    service_rate: float | None = None  # rows per second while a batch runs
    batch_empty_s: float | None = None  # duration of a batch without rows
    batch_fixed_s: float | None = None  # of one with rows, whatever their number
    batch_per_row_s: float | None = None  # what each row adds to it
    batch_s: float | None = None  # duration of the last batch
    selectivity: float | None = None  # rows written ÷ rows read
    frontier_lag_s: float | None = None  # batch start − largest event time it read: mean
    frontier_lag_std_s: float | None = None  # its standard deviation
    max_event_s: float | None = None  # largest event time read so far, without earlier future ones
    batch_start_s: float | None = None  # when the last batch began to work
    watermark_s: float | None = None  # the watermark that the last batch ran with
    next_watermark_s: float | None = None  # the one that the next batch will run with
    input_watermarks_s: tuple[float, ...] = ()  # what it is made of: one for each input
    sweep: Sweep | None = None  # the last that was seen to come, here or by the part upstream
    beyond: Outlook = NOTHING_BEYOND  # as the parts downstream have told
    operators: tuple[OperatorMetrics, ...] = ()  # from the source on
    state_rows: int | None = None
    state_bytes: int | None = None
    rows_dropped_by_watermark: int | None = None  # by stateful operators, so far: they came late


@dataclass(frozen=True, slots=True)
class QueryState:
    """One query at the moment of a decision."""

    spec: QuerySpec
    phase: Phase = "idle"
    since_s: float = 0.0  # when it entered this phase
    admitted_s: float | None = None  # when it was last admitted
    admissions: int = 0  # how often it was admitted
    metrics: QueryMetrics = field(default_factory=QueryMetrics)
    in_sink: bool = False  # its batch only waits for its sink, and takes no slot
    has_input: bool | None = None  # whether there is more than was read; None: nobody knows

    @property
    def name(self) -> str:
        return self.spec.name

    def may_begin_s(self, now_s: float) -> float:
        """Return when its next batch may begin, whatever the policy: now, or a little later."""
        until_s = self.spec.kept_open_until_s(now_s)
        if self.spec.pace_s <= 0 or self.admitted_s is None:
            return until_s
        return max(until_s, self.admitted_s + self.spec.pace_s)

    def waited_s(self, now_s: float) -> float:
        """Return how long it has been at the gate; 0 when it is not there."""
        return max(0.0, now_s - self.since_s) if self.phase == "waiting" else 0.0


@dataclass(frozen=True, slots=True)
class Memory:
    """Memory of the engine's processes: what lives there, not what waits for collection."""

    used_bytes: int
    limit_bytes: int

    @property
    def utilisation(self) -> float:
        return self.used_bytes / self.limit_bytes if self.limit_bytes else 0.0


LATELY_S = 60.0  # who was not admitted for so long is no load


@dataclass(frozen=True)  # no slots: what is worked out once is kept
class Snapshot:
    """All that a policy may look at."""

    now_s: float
    slots: int  # C: micro-batches that may run at once
    queries: tuple[QueryState, ...] = ()
    memory: Memory | None = None  # of the engine; None: not known
    cycle_s: float | None = None  # an admission ends after so long; None: with its micro-batch

    @cached_property
    def waiting(self) -> tuple[QueryState, ...]:
        return tuple([q for q in self.queries if q.phase == "waiting"])

    @cached_property
    def running(self) -> tuple[QueryState, ...]:
        return tuple([q for q in self.queries if q.phase == "running"])

    @cached_property
    def free_slots(self) -> int:
        return max(0, self.slots - sum(not query.in_sink for query in self.running))

    @cached_property
    def round_s(self) -> float:
        """How long all queries take that run, each once, through all slots.

        Where nobody is held, that is how long each waits for its turn.
        """
        since_s = self.now_s - LATELY_S
        batches_s = (
            query.metrics.batch_s or 0.0
            for query in self.queries
            if not query.in_sink and (query.admitted_s or 0.0) > since_s
        )
        return sum(batches_s) / self.slots


@dataclass(frozen=True, slots=True)
class Figures:
    """What a policy knew of a query when it chose it; for ``explain`` and reports."""

    stage: str  # drain, sweep, emit, …
    slack_s: float | None = None
    window_end_s: float | None = None  # the window that it works for
    arrival_s: float | None = None  # when its sweeping watermark is expected
    arrival_low_s: float | None = None  # and the interval of that
    arrival_high_s: float | None = None
    cost_s: float | None = None  # of all batches still needed for that window


Work = Literal["window", "result", "refresh", "look"]


class Prospect(NamedTuple):
    """When a query that waits will be let in, as its policy sees it."""

    work: Work  # what its next batch is for; a look: its source has been silent
    due_s: float  # from when on that is worth a batch
    overdue_s: float  # from when on it goes before all others, whatever that is for
    ahead: int | None = (
        None  # how many go before it, of those that could go now; None: it could not
    )
    window_end_s: float | None = None  # the window that it works for


@dataclass(frozen=True, slots=True)
class Admission:
    """Let one query run one micro-batch."""

    query: str
    reason: str  # one short phrase for people
    row_limit: int | None = None  # read at most about so many rows of each source; 0: none
    figures: Figures | None = None
    operators: int | None = None  # run only so many of them, from the source on; None: all
    watermark_s: float | None = None  # run with this watermark at least, or not yet; None: any


@dataclass(frozen=True, slots=True)
class Schedule:
    """What a policy wants to happen now."""

    admissions: tuple[Admission, ...] = ()
    wake_at_s: float | None = None  # ask again at this time even if nothing happens
    hold_s: float = 0.0  # no gate is to open by itself before it has held for so long


@dataclass(frozen=True, slots=True)
class Decision:
    """One admission as it is remembered for ``explain``."""

    at_s: float
    query: str
    reason: str
    waited_s: float
    waiting: tuple[str, ...]  # who else was at the gate; of very many only some
    running: tuple[str, ...]
    enforced: bool  # False in a dry run
    figures: Figures | None = None


def default_slots(cores: float) -> int:
    """Return how many micro-batches run at once on so many cores.

    >>> default_slots(2), default_slots(3)
    (3, 5)
    """
    return ceil(SLOTS_PER_CORE * cores)
