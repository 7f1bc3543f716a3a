"""Starts the queries of a fleet, each with its gate on before its first trigger."""

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from dataclasses import replace

from slackwater.core.errors import SlackwaterError
from slackwater.core.model import QuerySpec
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.plans.discovery import discover_query, output_mode
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.registry import Member, max_wait_s
from slackwater.engines.spark.queries.restarts import START_LIMIT_S
from slackwater.engines.spark.sources.row_limits import find_limited

log = logging.getLogger("slackwater.fleet")


class Launcher:
    """Starts queries, a few at once.

    Parameters
    ----------
    members
        Of the fleet, by name; those that are started are added.
    gate
        The gate that is put on: ``clock``, or any other for none. A source gate is in the query.
    at_once
        How many may be on their way to their first trigger.
    look
        Finds out which queries have arrived at a source gate.
    """

    def __init__(
        self, members: dict[str, Member], gate: str, at_once: int, look: Callable[[], object]
    ) -> None:
        self.lock = threading.Lock()  # one start at a time
        self.agent: Agent  # comes after us, because it tells us what has started
        self.named: dict[str, str] = {}  # queries by their runs
        self.closed = False  # nothing is started any more
        self._members = members
        self._gate = gate
        self._at_once = at_once
        self._look = look
        self._launching: Member | None = None  # while a start is under way, under the lock

    def launch(self, member: Member) -> None:
        """Start or restart a member's query; the agent puts the gate on as its thread begins."""
        assert member.writer is not None
        self._launching = member
        try:
            member.query = member.writer.start()
        finally:
            self._launching = None
        if member.query.runId not in self.named:
            # The start was handled too late to be held before its first trigger: do it now.
            name, spec = self._register(member, member.query.name, member.query.id)
            self.named[member.query.runId] = name
            if spec is not None:
                self.agent.hold(spec, member.query)
        self.agent.row_limits.link(member.spec.name, find_limited(member.query))
        if member.gate != "clock":
            self.agent.add(member.spec)
        if member.gate == "none":
            member.ready.set()
        if member.spec.deadlines == Deadlines():
            self._discover_later(member)
        elif member.gate == "source":  # its DataFrame does not tell
            mode = output_mode(member.query)
            deadlines = replace(member.spec.deadlines, output_mode=mode)
            member.spec = replace(member.spec, deadlines=deadlines)
            self.agent.add(member.spec)

    def relaunch(self, member: Member) -> None:
        """Start a query again, unless it was stopped meanwhile, or the fleet is closing."""
        with self.lock:
            if not self.closed and not member.stopped:
                self.launch(member)

    def await_turn(self) -> None:
        """Until another query may start."""
        until_s = time.monotonic() + START_LIMIT_S
        while len(starting := self.starting()) >= self._at_once:
            if time.monotonic() >= until_s:
                return
            starting[0].ready.wait(0.05)

    def starting(self) -> list[Member]:
        """Queries on their way to the first trigger, those that will be tried again included."""
        members = [m for m in list(self._members.values()) if m.query is not None]
        if any(m.gate == "source" and not m.ready.is_set() for m in members):
            with contextlib.suppress(SlackwaterError):
                self._look()
        return [m for m in members if not m.ready.is_set()]

    def on_started(
        self, query_name: str | None, query_id: str
    ) -> tuple[str | None, QuerySpec | None]:
        """A query has begun: one that is being launched, or a gated one that its user starts."""
        member = self._launching
        if member is not None and member.spec.name in ("", query_name):
            return self._register(member, query_name, query_id)
        known = self._members.get(query_name or "")
        return (query_name if known is not None and known.gate == "source" else None), None

    def on_refused(self, name: str, why: str) -> None:
        """The clock gate could not be put on."""
        log.warning("%s is not held: %s", name, why)
        self._members[name].gate = "none"
        self._members[name].ready.set()

    def _register(
        self, member: Member, query_name: str | None, query_id: str
    ) -> tuple[str, QuerySpec | None]:
        """The name is known now, and how the query is held."""
        spec = member.spec
        name = query_name or f"query-{query_id[:8]}"
        known = self._members.get(name)
        if known is not None and known.gate == "source":
            member.gate, member.spec = "source", replace(known.spec, target_s=spec.target_s)
        else:
            member.gate = "clock" if self._gate == "clock" else "none"
            member.spec = replace(spec, name=name)
        self._members[name] = member
        return name, member.spec if member.gate == "clock" else None

    def _discover_later(self, member: Member) -> None:
        """Windows are read from the running query's plan: the writer does not show its plan."""
        assert member.query is not None
        found = discover_query(member.query)
        wait_s = max_wait_s(member.stated_wait_s, found)
        member.spec = replace(member.spec, deadlines=found, max_wait_s=wait_s)
        self.agent.add(member.spec)
