"""Spark queries behind gates, as the controller sees them: who they are, and who may run."""

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import UNSET

from slackwater.core.model import (
    Memory,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Schedule,
    Snapshot,
    default_slots,
)
from slackwater.core.protocols import Clock
from slackwater.engines.spark.control.guard import Guard
from slackwater.engines.spark.control.query import Query
from slackwater.engines.spark.control.recent import Recent
from slackwater.engines.spark.progress import batch_end_s, coming_of
from slackwater.ipc.messages import (
    INPUTS_LAST_S,
    Arrive,
    Beat,
    Command,
    Done,
    FromGate,
    Gone,
    Grant,
    History,
    Inputs,
    InSinks,
    MemoryUse,
    Notes,
    Progress,
    Spec,
    Told,
)
from slackwater.ipc.progress import QueryProgress
from slackwater.ipc.questions import (
    Ask,
    BatchEvent,
    Event,
    Failure,
    Question,
    ResultEvent,
    answer,
    read_from_gate,
)
from slackwater.ipc.server import Client, Server
from slackwater.metrics.batches import Coming

log = logging.getLogger("slackwater.controller")

HARDLY = 0.8  # a bound on waiting that changes by less is not told


class QueryStore:
    """Every query that gates have told of.

    Parameters
    ----------
    on_opened
        Called with a query whose gate has opened by itself.
    """

    def __init__(self, on_opened: Callable[[str], None] = lambda name: None) -> None:
        self._on_opened = on_opened
        self.queries: dict[str, Query] = {}
        self.states: list[QueryState] = []  # of these, in the same order
        self.put_off: set[str] = set()  # those whose specs say that some batches begin later
        self.memory: Memory | None = None
        self.cores: int | None = None  # where slots follow them
        self.opened = 0  # gates that have opened by themselves, because nobody had let them
        self._executors: int | None = None  # their memory, 0 with a local master
        self.notes = Notes()  # what the fleet says of itself and its queries
        self.inputs = Inputs()  # what was last told of them
        self._inputs_s: float | None = None  # when that was; None: it counts no more
        self.recent = Recent[Event]()  # batches and results

    @property
    def waiting(self) -> Iterator[Query]:
        """Those at their gates."""
        return (query for query in self.queries.values() if query.state.phase == "waiting")

    def hear(self, message: FromGate, gate: Client, now_s: float) -> bool:
        """Take what a gate says; return whether a decision may be due."""
        forgot = self._forget_inputs(now_s)
        return self._take(message, gate, now_s) or forgot

    def _take(self, message: FromGate, gate: Client, now_s: float) -> bool:
        match message:
            case Arrive():
                self._arrive(message, gate, now_s)
            case Done(query=name, at=at_s):
                query = self._query(name)
                state = query.state
                if state.phase == "running" and (at_s is None or at_s >= state.since_s):
                    query.enter("idle", now_s)
            case Progress(query=name, progress=progress):
                query = self._query(name)
                query.state = replace(query.state, metrics=self._observe(query, progress))
                # A query that waits may be due now that its last batch is known.
                return query.state.phase == "waiting"
            case History(query=name, batches=batches):
                query = self._query(name)
                if not query.observer.metrics.batches:  # else it was told as it happened
                    for batch in batches:
                        query.observer.update(batch)
                    metrics = query.heard(query.observer.metrics)
                    query.state = replace(query.state, metrics=metrics)
                return query.state.phase == "waiting"
            case Told(query=name):
                query = self._query(name)
                query.hear(message)
                return query.state.phase == "waiting"
            case Gone(query=name):
                self._forget(name)
            case Spec(query=name):
                self._specify(self._query(name), message.spec())
                return False
            case MemoryUse():
                self.memory, self._executors = self._fuller(message), message.executors
                if message.cores is not UNSET:
                    self.cores = message.cores
                return False
            case InSinks(queries=names):
                return self._enter_sinks(set(names), gate)
            case Inputs():
                return self._hear_inputs(message, gate, now_s)
            case Notes():
                self.notes = message
                return False
        return True

    def _specify(self, query: Query, spec: QuerySpec) -> None:
        query.state = replace(query.state, spec=spec)
        if spec.begins_at_once:
            self.put_off.discard(spec.name)
        else:
            self.put_off.add(spec.name)

    def _enter_sinks(self, names: set[str], gate: Client) -> bool:
        """Take it that batches of these only wait; return whether a slot has become free."""
        freed = False
        for name, query in self.queries.items():
            waits = name in names and query.state.phase == "running"
            if query.gate is gate and query.state.in_sink != waits:
                query.state = replace(query.state, in_sink=waits)
                freed |= waits
        return freed

    def _hear_inputs(self, told: Inputs, gate: Client, now_s: float) -> bool:
        """Take it which queries at their gates have input; return whether that has changed."""
        self.inputs, self._inputs_s = told, now_s
        answers = dict.fromkeys(told.empty, False) | dict.fromkeys(told.filled, True)
        changed = False
        for name, query in self.queries.items():
            if query.gate is gate and query.state.phase == "waiting":
                changed |= query.hear_input(answers.get(name))
        return changed

    def _forget_inputs(self, now_s: float) -> bool:
        """Forget what nobody has said again for too long; return whether it was something."""
        if self._inputs_s is None or now_s < self._inputs_s + INPUTS_LAST_S:
            return False
        self._inputs_s = None
        return sum(query.hear_input(None) for query in self.queries.values()) > 0

    def lose_gate(self, gate: Client, now_s: float) -> None:
        """Take it that a gate has gone: its queries run by themselves."""
        for query in self.queries.values():
            if query.gate is gate:
                query.gate = None
                query.enter("idle", now_s)

    def _arrive(self, message: Arrive, gate: Client, now_s: float) -> None:
        query = self._query(message.query)
        if query.gate is gate and query.state.phase == "waiting" and message.seq > query.seq:
            self.opened += 1
            self._on_opened(message.query)
            log.info("the gate of %s has opened by itself: it had waited too long", message.query)
        query.gate, query.seq = gate, message.seq
        if message.again is True:
            query.wait_on(now_s)
            return
        watermark_ms = None if message.watermark_ms is UNSET else message.watermark_ms
        left = None if message.backlog_rows is UNSET else message.backlog_rows
        coming = coming_of(watermark_ms, message.input_watermarks_ms or (), left)
        query.enter("waiting", now_s, self._observe(query, message.progress or None, coming))

    def _observe(
        self, query: Query, progress: QueryProgress | None, coming: Coming | None = None
    ) -> QueryMetrics:
        """Return new metrics; note a batch and the results that came with it."""
        before = query.observer.metrics.batches
        metrics = query.observer.update(progress, coming)
        if progress is not None and metrics.batches != before:
            name, done_s, rows = query.state.name, batch_end_s(progress), progress.num_input_rows
            self.recent.add(BatchEvent(name, metrics.batch_start_s, done_s, rows, query.stage))
            spec = query.state.spec
            results = query.results.update(spec.deadlines, metrics, done_s)
            for result in results:
                self.recent.add(ResultEvent(name, result.end_s, result.latency_s))
            began_s = query.state.admitted_s
            query.promises.update(spec, results, query.looked_s, began_s, done_s)
        return query.heard(metrics)

    @property
    def is_local(self) -> bool:
        """Whether batches run on the driver's machine, as far as is known."""
        return self._executors == 0

    def _fuller(self, told: MemoryUse) -> Memory:
        """Return driver or executors, whichever has less room; of those only the state is seen."""
        driver = Memory(told.used, told.limit)
        state = sum(query.state.metrics.state_bytes or 0 for query in self.queries.values())
        return max(driver, Memory(state, told.executors), key=lambda memory: memory.utilisation)

    def _query(self, name: str) -> Query:
        if name not in self.queries:
            self.queries[name] = Query(QuerySpec(name), self.states)
        return self.queries[name]

    def _forget(self, name: str) -> None:
        gone = self.queries.pop(name, None)
        if gone is not None:
            del self.states[gone.place]
            for place, query in enumerate(self.queries.values()):
                query.place = place
        self.put_off.discard(name)


def unknown_question(question: Question | Ask) -> Failure:
    """Answer a question that nobody knows."""
    return Failure(f"unknown question {question.what}")


class GateDriver:
    """Driver and enforcer of the cycle, for Spark queries behind gates.

    Parameters
    ----------
    path
        Unix socket to listen on.
    slots
        C: micro-batches admitted at once.
    hold_nothing
        Grant every arrival at once (dry run, or switched off).
    answers
        Answers questions.
    guard, held_up
        Watches whether holding does harm, where somebody can say who is held up since when.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        slots: int,
        *,
        hold_nothing: bool = False,
        answers: Callable[[Question | Ask], object] = unknown_question,
        guard: Guard | None = None,
        held_up: Callable[[Snapshot], Mapping[str, float]] = lambda snapshot: {},
    ) -> None:
        self.clock = clock
        self.guard = guard
        self._held_up = held_up
        self.slots = slots
        self.hold_nothing = hold_nothing
        self.store = QueryStore(self._on_opened)
        self._answers = answers
        self._released_s = math.inf  # when the next query may begin that must not yet
        self._hold_s = 0.0  # that gates are told
        self._server = Server(path, clock, read_from_gate, self, self._beat)

    def close(self) -> None:
        """Stop listening; gates notice at once and open."""
        self._server.close()

    def _beat(self) -> Beat:
        return Beat(self.hold_nothing, self._hold_s)

    # -- driver ---------------------------------------------------------------------------------

    def collect(self, now_s: float) -> Snapshot:
        self._released_s = math.inf
        if self.store.cores is not None:
            self.slots = default_slots(self.store.cores)
        states = self.store.states
        if self.store.put_off:
            states = [self._shown(state, now_s) for state in states]
        snapshot = Snapshot(now_s, self.slots, tuple(states), self.store.memory)
        return snapshot if self.guard is None else self._guarded(snapshot, self.guard)

    def _guarded(self, snapshot: Snapshot, guard: Guard) -> Snapshot:
        """Add the slots that the guard gives, unless their number was stated."""
        cores = self.store.cores
        if cores is None:
            return snapshot
        extra = guard.extra
        given = replace(snapshot, slots=self.slots + extra) if extra else snapshot
        if guard.due(snapshot.now_s) and self.store.is_local and not self.hold_nothing:
            guard.look(snapshot.now_s, snapshot, self._held_up(given), given.free_slots, cores)
        return given

    def _on_opened(self, name: str) -> None:
        if self.guard is not None:
            self.guard.gate_opened(name, self.clock.now())

    def _shown(self, state: QueryState, now_s: float) -> QueryState:
        """Show a query that must not begin yet as one that is not there yet."""
        if state.phase != "waiting":
            return state
        until_s = state.may_begin_s(now_s)
        if until_s <= now_s:
            return state
        self._released_s = min(self._released_s, until_s)
        return replace(state, phase="idle")

    def wait(self, until_s: float) -> None:
        for query in self._let_through():
            query.stage = ""
            self._grant(query, None)
        self._server.wait(min(until_s, self._released_s))

    def _let_through(self) -> list[Query]:
        """Return those at their gates that are not to be held, whatever the policy says."""
        if self.hold_nothing:
            return list(self.store.waiting)
        if self.guard is None:
            return []
        now_s, guard = self.clock.now(), self.guard
        if guard.holds_all(now_s):
            return []
        return [q for q in self.store.waiting if guard.lets_through(q.state.name, now_s)]

    # -- enforcer -------------------------------------------------------------------------------

    def enforce(self, schedule: Schedule) -> None:
        if not HARDLY < (schedule.hold_s or 1e-9) / (self._hold_s or 1e-9) < 1 / HARDLY:
            self._hold_s = round(schedule.hold_s, 1)
        if self.hold_nothing:
            return
        for admission in schedule.admissions:
            query = self.store.queries.get(admission.query)
            if query is not None and query.state.phase == "waiting":
                query.stage = admission.figures.stage if admission.figures is not None else ""
                self._grant(query, admission.row_limit, admission.watermark_s)

    def _grant(self, query: Query, row_limit: int | None, watermark_s: float | None = None) -> None:
        query.enter("running", self.clock.now())
        if query.gate is not None:
            needed_ms = UNSET if watermark_s is None else round(1000 * watermark_s)
            grant = Grant(query.state.name, query.seq, row_limit, needed_ms)
            self._server.renew(query.gate, grant)

    # -- what comes in --------------------------------------------------------------------------

    def received(self, client: Client, message: FromGate | Question | Ask) -> bool:
        """Take a message; return whether a decision may be due."""
        if isinstance(message, FromGate):
            return self.store.hear(message, client, self.clock.now())
        self._server.send(client, answer(self._answers(message)))
        return False

    def dropped(self, client: Client) -> None:
        """Take it that somebody has gone."""
        self.store.lose_gate(client, self.clock.now())

    def tell(self, command: Command) -> None:
        """Tell the fleet what somebody wants of it."""
        self._server.broadcast(command)
