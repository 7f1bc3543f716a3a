"""The controller's end of the wire: it knows every query and gives the grants.

One thread, one selector. It is both the driver (collect, wait) and the enforcer of the cycle.
"""

import logging
import math
import os
import selectors
import socket
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from slackwater.core.model import (
    Memory,
    Outlook,
    Phase,
    QueryMetrics,
    QuerySpec,
    QueryState,
    Schedule,
    Snapshot,
    Sweep,
)
from slackwater.core.protocols import Clock
from slackwater.core.windows import Deadlines, InputStream, Window
from slackwater.engines.spark.control.recent import Recent
from slackwater.engines.spark.control.view import view
from slackwater.engines.spark.progress import QueryObserver, batch_end_s, coming_of
from slackwater.ipc import wire
from slackwater.ipc.wire import LineBuffer, Message
from slackwater.metrics.batches import Coming
from slackwater.metrics.results import ResultObserver

log = logging.getLogger("slackwater.controller")

Answer = Callable[[Message], Any]

# One that does not read must not cost the others their lease.
SEND_LIMIT_S = 0.05


class _Client:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = LineBuffer()
        self.gated: set[str] = set()  # queries whose gate is at the other end
        self.told_s = 0.0  # when it last heard of us
        self.beat_s = 0.0  # when it last heard a beat

    @property
    def beat_due_s(self) -> float:
        """A grant renews the lease as well, but only a beat tells whether gates are to be open."""
        return min(self.told_s + wire.BEAT_PERIOD_S, self.beat_s + wire.LEASE_S)


class _Query:
    """One query, with what must be remembered between two snapshots."""

    def __init__(self, spec: QuerySpec) -> None:
        self.state = QueryState(spec)
        self.observer = QueryObserver()
        self.results = ResultObserver()
        self.stage = ""  # what its last admission was for, as far as the policy says
        self.client: _Client | None = None  # where its gate is
        self.seq = 0  # of its latest arrival; a grant carries it, so that a stale one is ignored
        self._sweep: Sweep | None = None  # as parts of the query elsewhere have told
        self._beyond = Outlook()

    def hear(self, message: Message) -> None:
        """What another part of the query, on another worker perhaps, has seen or will cost."""
        if message.get("sweep") is not None:
            self._sweep = Sweep(*map(float, message["sweep"]))
        if message.get("beyond") is not None:
            self._beyond = Outlook(*map(float, message["beyond"]))
        self.state = replace(self.state, metrics=self.heard(self.state.metrics))

    def heard(self, metrics: QueryMetrics) -> QueryMetrics:
        """What its batches show, and what was heard."""
        if self._sweep is None and self._beyond == Outlook():
            return metrics
        return replace(metrics, sweep=self._sweep, beyond=self._beyond)

    def enter(self, phase: Phase, now_s: float, metrics: QueryMetrics | None = None) -> None:
        before = self.state
        self.state = QueryState(
            spec=before.spec,
            phase=phase,
            since_s=now_s,
            admitted_s=now_s if phase == "running" else before.admitted_s,
            admissions=before.admissions + (phase == "running"),
            metrics=before.metrics if metrics is None else metrics,
        )


class ControlServer:
    """Driver and enforcer for Spark queries behind gates.

    Parameters
    ----------
    path
        Unix socket to listen on.
    slots
        C: micro-batches admitted at once.
    hold_nothing
        Grant every arrival at once (dry run, or switched off).
    answers
        Further questions that clients may ask, by name.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        slots: int,
        *,
        hold_nothing: bool = False,
        answers: dict[str, Answer] | None = None,
    ) -> None:
        self.path = path
        self.clock = clock
        self.slots = slots
        self.hold_nothing = hold_nothing
        self.answers: dict[str, Answer] = {"status": self._status, **(answers or {})}
        self._queries: dict[str, _Query] = {}
        self._clients: set[_Client] = set()
        self._memory: Memory | None = None
        self.recent = Recent()  # batches and results
        self.notes: Message = {}  # what the fleet says of itself and its queries
        self._next_beat_s = 0.0
        self._released_s = math.inf  # when the next query may begin that must not yet
        self._selector = selectors.DefaultSelector()
        self._server = wire.listen(path)
        self._server.setblocking(False)
        self._selector.register(self._server, selectors.EVENT_READ)

    # -- driver ---------------------------------------------------------------------------------

    def collect(self, now_s: float) -> Snapshot:
        self._released_s = math.inf
        states = tuple(self._shown(query.state, now_s) for query in self._queries.values())
        return Snapshot(now_s, self.slots, states, self._memory)

    def _shown(self, state: QueryState, now_s: float) -> QueryState:
        """A query that must not begin yet is not there yet."""
        spec = state.spec
        if (spec.keep_open_s <= 0 and spec.pace_s <= 0) or state.phase != "waiting":
            return state
        until_s = spec.kept_open_until_s(now_s)
        if state.admitted_s is not None:
            until_s = max(until_s, state.admitted_s + spec.pace_s)
        if until_s <= now_s:
            return state
        self._released_s = min(self._released_s, until_s)
        return replace(state, phase="idle")

    def wait(self, until_s: float) -> None:
        if self.hold_nothing:
            self._grant_all()
        until_s = min(until_s, self._released_s)
        while True:
            now_s = self.clock.now()
            if now_s >= self._next_beat_s:
                self._beat(now_s)
            timeout_s = max(0.0, min(until_s, self._next_beat_s) - now_s)
            if self._serve(timeout_s) or self.clock.now() >= until_s:
                return

    # -- enforcer -------------------------------------------------------------------------------

    def enforce(self, schedule: Schedule) -> None:
        if self.hold_nothing:
            return
        for admission in schedule.admissions:
            query = self._queries.get(admission.query)
            if query is not None and query.state.phase == "waiting":
                query.stage = admission.figures.stage if admission.figures is not None else ""
                self._grant(query, admission.row_limit)

    # -- the wire -------------------------------------------------------------------------------

    def close(self) -> None:
        """Stop listening; gates notice at once and open."""
        for client in list(self._clients):
            self._drop(client)
        self._selector.close()
        self._server.close()
        self.path.unlink(missing_ok=True)

    def _serve(self, timeout_s: float) -> bool:
        """Handle what has come in; whether a decision may be due."""
        due = False
        for key, _ in self._selector.select(timeout_s):
            if key.fileobj is self._server:
                self._accept()
            else:
                due |= self._receive(key.data)
        return due

    def _accept(self) -> None:
        try:
            connection, _ = self._server.accept()
        except OSError as error:
            log.warning("a connection could not be taken: %s", error)
            return
        if wire.peer_uid(connection) not in (os.getuid(), 0):
            log.warning("refused a connection of another user")
            connection.close()
            return
        connection.settimeout(SEND_LIMIT_S)
        client = _Client(connection)
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, client)
        self._beat(self.clock.now())

    def _receive(self, client: _Client) -> bool:
        try:
            data = client.connection.recv(1 << 16)
            if not data:
                return self._drop(client)
            due = False
            for message in client.buffer.feed(data):
                due |= self._handle(client, message)
            return due
        except (OSError, wire.WireError) as error:
            log.warning("connection dropped: %s", error)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            log.warning("message refused, connection dropped: %r", error)
        return self._drop(client)

    def _handle(self, client: _Client, message: Message) -> bool:
        op = message["op"]
        if op == "ask":
            answer = self.answers.get(message["what"])
            value = answer(message) if answer else {"error": f"unknown question {message['what']}"}
            self._send(client, {"op": "answer", "value": value})
            return False
        if op == "memory":
            self._memory = self._fuller(message)
            return False
        if op == "notes":
            self.notes = {key: value for key, value in message.items() if key != "op"}
            return False
        name = str(message["query"])
        if op == "spec":
            self._query(name).state = replace(self._query(name).state, spec=read_spec(message))
            return False
        query = self._query(name)
        now_s = self.clock.now()
        if op == "arrive":
            client.gated.add(name)
            query.client, query.seq = client, int(message["seq"])
            coming = coming_of(message.get("watermark_ms"), message.get("input_watermarks_ms"))
            query.enter("waiting", now_s, self._observe(query, message.get("progress"), coming))
        elif op == "done":
            if query.state.phase == "running" and message.get("at", now_s) >= query.state.since_s:
                query.enter("idle", now_s)
        elif op == "told":
            query.hear(message)
            return query.state.phase == "waiting"
        elif op == "gone":
            self._queries.pop(name, None)
        elif op == "progress":
            metrics = self._observe(query, message["progress"])
            query.state = replace(query.state, metrics=metrics)
            # A query that waits may be due now that its last batch is known.
            return query.state.phase == "waiting"
        return True

    def _observe(
        self, query: _Query, progress: Message | None, coming: Coming | None = None
    ) -> QueryMetrics:
        """New metrics; a batch and the results that came with it are noted."""
        before = query.observer.metrics.batches
        metrics = query.observer.update(progress, coming)
        if progress is not None and metrics.batches != before:
            name, done_s = query.state.name, batch_end_s(progress)
            self.recent.add(
                "batch",
                query=name,
                start_s=metrics.batch_start_s,
                end_s=done_s,
                rows=progress["numInputRows"],
                stage=query.stage,
            )
            for result in query.results.update(query.state.spec.deadlines, metrics, done_s):
                self.recent.add("result", query=name, **result._asdict())
        return query.heard(metrics)

    def _fuller(self, message: Message) -> Memory:
        """Driver or executors, whichever has less room; of executors only the state is seen."""
        driver = Memory(int(message["used"]), int(message["limit"]))
        state = sum(query.state.metrics.state_bytes or 0 for query in self._queries.values())
        executors = Memory(state, int(message["executors"]))
        return max(driver, executors, key=lambda memory: memory.utilisation)

    def _query(self, name: str) -> _Query:
        if name not in self._queries:
            self._queries[name] = _Query(QuerySpec(name))
        return self._queries[name]

    def _grant_all(self) -> None:
        for query in self._queries.values():
            if query.state.phase == "waiting":
                query.stage = ""
                self._grant(query, None)

    def _grant(self, query: _Query, row_limit: int | None) -> None:
        now_s = self.clock.now()
        state = query.state
        query.enter("running", now_s)
        client = query.client
        if client is not None:
            messages = [{"op": "grant", "query": state.name, "seq": query.seq, "rows": row_limit}]
            client.told_s = now_s
            if now_s >= client.beat_s + wire.LEASE_S / 2:  # so that nobody wakes for a beat alone
                messages.append(self._beat_message(client, now_s))
            self._send(client, *messages)
            if self._clients == {client}:  # as usual
                self._next_beat_s = client.beat_due_s

    def _beat(self, now_s: float) -> None:
        """To all that have heard nothing for a while."""
        for client in list(self._clients):
            if now_s >= client.beat_due_s:
                self._send(client, self._beat_message(client, now_s))
        due_s = (client.beat_due_s for client in self._clients)
        self._next_beat_s = min(due_s, default=now_s + wire.BEAT_PERIOD_S)

    def _beat_message(self, client: _Client, now_s: float) -> Message:
        client.told_s = client.beat_s = now_s
        return {"op": "beat", "open": self.hold_nothing}

    def _send(self, client: _Client, *messages: Message) -> None:
        try:
            client.connection.sendall(b"".join(map(wire.encode, messages)))
        except OSError as error:
            log.warning("connection dropped: %s", error)
            self._drop(client)

    def _drop(self, client: _Client) -> bool:
        if client in self._clients:
            self._clients.discard(client)
            self._selector.unregister(client.connection)
            client.connection.close()
            for name in client.gated:
                query = self._queries.get(name)
                if query is not None and query.client is client:
                    query.client = None
                    query.enter("idle", self.clock.now())
        return True

    def tell(self, command: Message) -> None:
        """Pass something on to the fleet."""
        for client in list(self._clients):
            self._send(client, {"op": "command", **command})

    def overview(self) -> Message:
        """What those see who watch."""
        return {
            "now_s": self.clock.now(),
            "slots": self.slots,
            "open": self.hold_nothing,
            "memory": asdict(self._memory) if self._memory else None,
            "queries": [view(query.state, query.stage) for query in self._queries.values()],
            **self.notes,
        }

    def _status(self, _: Message) -> Any:
        now_s = self.clock.now()
        queries = [
            asdict(query.state) | {"waited_s": query.state.waited_s(now_s)}
            for query in self._queries.values()
        ]
        return {
            "now_s": now_s,
            "slots": self.slots,
            "open": self.hold_nothing,
            "memory": asdict(self._memory) if self._memory else None,
            "queries": queries,
        }


def spec_message(spec: QuerySpec) -> Message:
    """A specification as it travels."""
    return {"op": "spec", "query": spec.name, **asdict(spec)}


def read_spec(message: Message) -> QuerySpec:
    """The inverse of :func:`spec_message`.

    >>> spec = QuerySpec("q", 2.0, 5.0, Deadlines((Window("tumbling", 3.0, 3.0),)))
    >>> read_spec(spec_message(spec)) == spec
    True
    """
    found = message["deadlines"]
    windows = read_windows(found["windows"])
    inputs = tuple(InputStream(**_tuples(i)) for i in found["inputs"])
    return QuerySpec(
        name=str(message["query"]),
        priority=float(message["priority"]),
        max_wait_s=float(message["max_wait_s"]),
        deadlines=Deadlines(windows, inputs, str(found["output_mode"])),
        keep_open_s=float(message.get("keep_open_s", 0.0)),
        pace_s=float(message.get("pace_s", 0.0)),
        target_s=message.get("target_s"),
    )


def read_windows(found: list[dict[str, Any]]) -> tuple[Window, ...]:
    """From JSON."""
    return tuple(Window(**_tuples(each)) for each in found)


def _tuples(fields: dict[str, Any]) -> dict[str, Any]:
    """JSON has no tuples."""
    return {key: tuple(v) if isinstance(v, list) else v for key, v in fields.items()}
