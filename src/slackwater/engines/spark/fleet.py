"""The fleet: many streaming queries of one Spark application under one policy."""

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater import policies
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.core.model import QuerySpec, default_slots
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.approximate.fleet import FleetApproximate
from slackwater.engines.spark.approximate.planner import Planner
from slackwater.engines.spark.control.client import FleetControl, Known
from slackwater.engines.spark.control.service import ControllerSettings
from slackwater.engines.spark.gates import source as source_gate
from slackwater.engines.spark.gates.choice import GateKind, choose_gate
from slackwater.engines.spark.plans.discovery import discover, discover_query
from slackwater.engines.spark.queries.agent import Agent, AgentEvents
from slackwater.engines.spark.queries.forwarding import FleetParts
from slackwater.engines.spark.queries.handle import FleetQuery
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.pauses import Pauses
from slackwater.engines.spark.queries.registry import (
    Member,
    first_line,
    note,
    query_spec,
    query_status,
)
from slackwater.engines.spark.queries.restarts import Restarter
from slackwater.engines.spark.queries.status import Accuracies, FleetStatus
from slackwater.engines.spark.shedding.fleet import FleetQuality
from slackwater.engines.spark.shedding.loop import QualityLoop, QualitySettings
from slackwater.engines.spark.sources.row_limits import find_limited
from slackwater.ipc.client import ask, refuse_if_answered
from slackwater.ipc.messages import Command, Notes
from slackwater.ipc.questions import Control, Controlled
from slackwater.ipc.unix_socket import default_fleet_name, socket_path
from slackwater.sampling import Promise

log = logging.getLogger("slackwater.fleet")

SETTLE_LIMIT_S = 5.0  # how long stopping waits for running batches to end


class Fleet:
    """Holds the queries of a Spark application and lets the policy admit their micro-batches.

    Parameters
    ----------
    spark
        The session whose queries are to be scheduled; see :func:`slackwater.spark.session`.
    policy
        A name (``slackwater doctor`` lists them) or ``module:Class``.
    name
        Of the fleet: its control socket is named after it.
    slots
        C, how many micro-batches may run at once. Default: one and a half for each core.
    gate
        ``clock`` (nothing about a query changes), ``source`` (public API only), ``none``, or
        ``auto``: the clock gate where this Spark has what it needs.
    max_wait
        Seconds that a micro-batch waits at most, whatever the policy; a query may have its own.
        Default: 10, or two and a half times the distance of its windows if that is longer.
    controller
        ``process`` (a process of its own) or ``thread``.
    dry_run
        Decide, but hold nothing.
    parameters
        For the policy's constructor.
    quality
        How queries with a ``min_accuracy`` are shed.

    Examples
    --------
    >>> with Fleet(spark, policy="klink") as fleet:      # doctest: +SKIP
    ...     fleet.start(counts.writeStream.queryName("counts").format("console"))
    ...     print(fleet.status())
    """

    def __init__(
        self,
        spark: SparkSession,
        policy: str = "klink",
        *,
        name: str | None = None,
        slots: int | None = None,
        gate: GateKind = "auto",
        max_wait: float | None = None,
        controller: Literal["process", "thread"] = "process",
        dry_run: bool = False,
        starts_at_once: int = 4,
        parameters: dict[str, Any] | None = None,
        quality: QualitySettings | None = None,
    ) -> None:
        if slots is not None and slots < 1:
            raise UsageError(f"slots must be at least 1, not {slots}")
        if max_wait is not None and max_wait <= 0:
            raise UsageError(f"max_wait must be positive, not {max_wait}")
        self._gated = policies.load(policy, **(parameters or {})).gated  # wrong names fail here
        self.spark = spark
        self._app_name = spark.sparkContext.appName
        self.policy = policy
        self.name = name or default_fleet_name()
        self.slots = slots or default_slots(spark.sparkContext.defaultParallelism)
        self.max_wait = max_wait
        self.gate_kind, self.gate_reason = choose_gate(spark, gate)
        self._members: dict[str, Member] = {}
        self._closing = threading.Event()
        held = self.gate_kind if self._gated else "none"
        self._launcher = Launcher(self._members, held, starts_at_once, self._ask_controller)
        self._pauses = Pauses(self._members, self._launcher)
        self._progress_sinks: list[Callable[[str, dict[str, Any]], None]] = []
        self.socket = socket_path(self.name)
        refuse_if_answered(self.socket, self.name)
        settings = ControllerSettings(
            str(self.socket), policy, self.slots, dry_run, parameters or {}
        )
        self._control = FleetControl(settings, controller)
        self._events = AgentEvents(
            self._on_ready,
            self._on_progress,
            self._on_terminated,
            self._launcher.on_started,
            self._launcher.on_refused,
            self._on_command,
            self._notes,
            self._launcher.named,
        )
        self._agent = Agent(spark, self.socket, self._events)
        self._launcher.agent = self._agent
        holds = self._gated and not dry_run
        if holds:
            self._control.await_held(self._agent.link)
        self._restarter = Restarter(self._launcher.relaunch)
        self._quality = FleetQuality(spark, quality or QualitySettings(), self._launcher)
        self.on_progress(self._quality.take)
        self.parts = FleetParts(self._members, self._agent, self._ask_controller)
        self.on_progress(self.parts.take)
        can_hold = holds and self.gate_kind != "none"
        self._approximate = FleetApproximate(self._members, self._agent, can_hold, self.on_progress)

    # -- queries --------------------------------------------------------------------------------

    def start(
        self,
        writer: DataStreamWriter,
        *,
        name: str | None = None,
        priority: float = 1.0,
        max_wait: float | None = None,
        deadlines: Deadlines | None = None,
        min_accuracy: float | None = None,
        target: float | None = None,
    ) -> StreamingQuery:
        """Start ``df.writeStream…`` held: not even its first micro-batch runs before its grant.

        A few queries start at once, others wait here for their turn. If the query fails because a
        Python process of one of its sources was lost, it is started again from its checkpoint.

        Parameters
        ----------
        priority
            Larger is more important.
        min_accuracy
            The least part of its input that the query must process. When input outgrows the
            machine, rows are dropped down to this, those of less important queries first. Its
            rows must be ``sheddable``. None: nothing is dropped, ever.
        target
            Seconds from a window's end to its result that are wanted. No policy goes by it: the
            page and the metrics show what is reached beside it.
        """
        known = self._members.get(name or "")
        if self.gate_kind == "source" and self._gated and (known is None or known.gate != "source"):
            raise UsageError("the source gate needs the DataFrame: fleet.gate(df, name) first")
        self._launcher.await_turn()
        with self._launcher.lock:
            if name is not None:
                self._refuse_duplicate(name)
                writer = writer.queryName(name)
            stated_s = self.max_wait if max_wait is None else max_wait
            spec = query_spec(name or "", priority, stated_s, deadlines or Deadlines())
            spec = replace(spec, target_s=target)
            member = Member(spec, "none", writer, stated_wait_s=stated_s)
            if min_accuracy is not None:
                self._quality.prepare(name, writer, min_accuracy)
            self._launcher.launch(member)
        self._quality.add(member, min_accuracy)
        assert member.query is not None
        return FleetQuery(member.query, lambda: self.status().only(member.spec.name))

    def hold(
        self,
        query: StreamingQuery,
        *,
        name: str | None = None,
        priority: float = 1.0,
        max_wait: float | None = None,
        deadlines: Deadlines | None = None,
    ) -> StreamingQuery:
        """Take over a query that runs already, with its checkpoint as it is (clock gate)."""
        if self.gate_kind == "source":
            raise UsageError(f"a running query can be held only by its clock: {self.gate_reason}")
        name = name or query.name or f"query-{query.id[:8]}"
        self._refuse_duplicate(name)
        stated_s = self.max_wait if max_wait is None else max_wait
        spec = query_spec(name, priority, stated_s, deadlines or discover_query(query))
        held = self.gate_kind == "clock" and self._gated
        member = Member(spec, "clock" if held else "none", query=query)
        self._members[name] = member
        self._events.named[query.runId] = name
        if held:
            try:
                self._agent.hold(spec, query)
            except SlackwaterError:
                del self._members[name], self._events.named[query.runId]
                raise
        else:
            self._agent.add(spec)
            member.ready.set()
        self._agent.row_limits.link(name, find_limited(query))
        return query

    def gate(
        self,
        df: DataFrame,
        name: str,
        *,
        priority: float = 1.0,
        max_wait: float | None = None,
        deadlines: Deadlines | None = None,
    ) -> DataFrame:
        """``df`` behind a source gate: write it with ``writeStream`` as ever, named ``name``.

        Start it with :meth:`start` and it is also started again if its gate's process is killed.
        """
        if not df.isStreaming:
            raise UsageError(f"{name}: a batch DataFrame cannot be gated; read it with readStream")
        self._refuse_duplicate(name)
        found = discover(df)
        if len(found.inputs) > source_gate.MOST_OTHER_SOURCES:
            raise UsageError(
                f"{name} has {len(found.inputs)} sources; Spark asks the gate first only beside "
                f"{source_gate.MOST_OTHER_SOURCES} others: use the clock gate (fleet.start)"
            )
        stated_s = self.max_wait if max_wait is None else max_wait
        spec = query_spec(name, priority, stated_s, deadlines or found)
        self._members[name] = Member(spec, "source")
        self._agent.add(spec)
        limited = find_limited(df)
        self._agent.row_limits.link(name, limited)
        return source_gate.gate(
            self.spark,
            df,
            query=name,
            socket=self.socket,
            limited=limited,
            max_wait_s=spec.max_wait_s,
        )

    def approximate(
        self,
        df: DataFrame,
        *,
        time: str,
        window: str,
        aggregates: Mapping[str, str],
        slide: str | None = None,
        offset: str | None = None,
        by: Sequence[str] = (),
        error: float = 0.05,
        confidence: float = 0.95,
        sampler: str = "aion",
        arrival: str | None = None,
    ) -> DataFrame:
        """A windowed aggregate within a stated error that does not wait for stragglers.

        Write the result with ``writeStream`` in append mode, as ever. Each of its rows has the
        window, the columns of ``by``, for each aggregate its value and the ends of its interval
        (``name``, ``name_low``, ``name_high``), ``sampling_rate``, and ``bounded``: whether the
        interval is within the promised error.

        Parameters
        ----------
        df
            Rows of a source of ours, made with ``sampled=True``, with its column ``sample``; or
            of any other, see ``arrival``.
        time, window, slide, offset
            As for ``pyspark.sql.functions.window``.
        by
            Columns to group by; the promise holds for each group.
        aggregates
            ``{"views": "count()", "far": "mean(distance)"}``; also ``sum(column)``,
            ``ratio(column, column)``, ``quantile(column, 0.95)``.
        error, confidence
            ``P(relative error <= error) >= confidence``; default 0.05 and 0.95.
        sampler
            ``aion``, or one of those that it is compared with.
        arrival
            For any other source: the column with the time at which each row arrived. Rows are
            then sampled by a filter inside Spark, and windows are kept open by the gate, for no
            longer than half their slide.
        """
        return self._approximate.build(
            df,
            time=time,
            window=window,
            slide=slide,
            offset=offset,
            by=by,
            aggregates=aggregates,
            promise=Promise(error, confidence),
            sampler=sampler,
            arrival=arrival,
        )

    @property
    def planners(self) -> list[Planner]:
        """Of approximate queries."""
        return self._approximate.planners

    def stop_query(self, name: str) -> None:
        """Stop one query and forget it; started again, it goes on from its checkpoint."""
        member = self._members.get(name)
        if member is None:
            raise UsageError(f"the fleet has no query named {name!r}")
        member.stopped = True
        if member.query is not None:
            member.query.stop()
            self._events.named.pop(member.query.runId, None)
        self._quality.loop.remove(name)
        self._agent.remove(name)
        self._members.pop(name, None)

    def forget(self, name: str) -> None:
        """Take a query that has ended off the list, so that it can be started again."""
        member = self._members.get(name)
        if member is not None and not member.active:
            self._quality.loop.remove(name)
            self._agent.row_limits.forget(name)
            del self._members[name]

    def release(self, name: str) -> None:
        """Take a query out of the fleet; it goes on as plain Spark."""
        member = self._members.get(name)
        if member is None:
            raise UsageError(f"the fleet has no query named {name!r}")
        if member.gate == "source":
            raise UsageError(f"{name} is gated by its source: stop it, `slackwater release` it")
        del self._members[name]
        if member.query is not None:
            self._events.named.pop(member.query.runId, None)
        self._quality.loop.remove(name)
        self._agent.remove(name, goes_on=True)

    @property
    def ended(self) -> set[str]:
        """Names of queries that will not run again by themselves."""
        return {member.spec.name for member in self._all() if member.ended}

    @property
    def queries(self) -> dict[str, StreamingQuery]:
        """The queries that were started or held, by name."""
        return {m.spec.name: m.query for m in self._all() if m.query is not None}

    @property
    def failures(self) -> dict[str, str]:
        """First lines of the errors of the queries that failed, by name."""
        return {m.spec.name: m.error for m in self._all() if m.error is not None}

    def report_failure(self, name: str, error: str) -> None:
        """Keep a query that could not even be built in the status, with what went wrong."""
        failed = Member(QuerySpec(name), "none", error=first_line(error), ended=True)
        self._members[name] = failed

    # -- control and view -----------------------------------------------------------------------

    def off(self) -> None:
        """Open every gate: queries go on as plain Spark, and nothing is shed."""
        self._quality.loop.enabled = False
        self._control.off()

    def on(self) -> None:
        """Hold queries again; also starts a controller that had given up."""
        self._quality.loop.enabled = True
        self._control.on(self._agent.link)

    def switch(self, policy: str) -> None:
        """Another policy from now on. Queries that were started under one that holds nobody have
        no gate, and stay without."""
        ask(self.socket, Control(action="policy", policy=policy), Controlled)

    def pause(self, name: str) -> None:
        """Stop a query until :meth:`resume`; it goes on from its checkpoint then."""
        self._pauses.pause(name)

    def resume(self, name: str) -> None:
        """Let a query go on that was paused."""
        self._quality.loop.resumed(name)
        self._pauses.resume(name)

    @property
    def controller_pid(self) -> int | None:
        """Of the controller's process; ``None`` when it is a thread."""
        return self._control.pid

    def controller_cpu_s(self) -> float:
        """CPU time that the controller has used so far."""
        return self._control.cpu_s()

    def status(self) -> FleetStatus:
        """Every query with its state and figures; prints as a table, also in notebooks."""
        try:
            known, is_open = self._ask_controller()
            controller = "open" if is_open else "running"
        except SlackwaterError:
            known, controller = {}, "off: queries run as plain Spark"
        rows = tuple(
            query_status(m, known.get(m.spec.name), self._quality.of(m.spec.name))
            for m in self._all()
        )
        gate = f"{self.gate_kind} ({self.gate_reason})"
        return FleetStatus(self.name, self.policy, gate, controller, self.slots, rows)

    @property
    def quality(self) -> QualityLoop:
        """What sheds its queries and knows what they cost."""
        return self._quality.loop

    def accuracy(self, name: str) -> Accuracies | None:
        """Of a query that may be shed; None for others."""
        return self._quality.of(name)

    def explain(self, last: int = 20, query: str | None = None) -> list[dict[str, Any]]:
        """The last decisions, newest first: which query, why, how long it waited, who else did."""
        return self._control.decisions(last, query)

    def on_progress(self, sink: Callable[[str, dict[str, Any]], None]) -> None:
        """Call ``sink(query name, progress)`` for every progress event. It must return at once."""
        self._progress_sinks.append(sink)

    def wait(self, timeout_s: float | None = None) -> bool:
        """Until no query is active, or for ``timeout_s``; whether all have ended."""
        until_s = time.monotonic() + (timeout_s if timeout_s is not None else float("inf"))
        while not all(member.ended for member in self._all()):
            if time.monotonic() >= until_s:
                return False
            time.sleep(0.1)
        return True

    def wait_ready(self, timeout_s: float) -> bool:
        """Until every query has reached its first trigger (or failed); whether all have."""
        until_s = time.monotonic() + timeout_s
        while waiting := self._launcher.starting():
            if time.monotonic() >= until_s:
                return False
            waiting[0].ready.wait(0.05)
        return True

    def stop(self) -> None:
        """Stop the queries that the fleet started, let the others go, end the controller."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._launcher.closed = True
        self._restarter.close()
        self._quality.loop.close()
        self._agent.settle(SETTLE_LIMIT_S)
        for member in self._all():
            member.stopped = True
            if member.writer is not None and member.query is not None:
                try:
                    member.query.stop()
                except Exception as error:
                    log.warning("%s did not stop cleanly: %s", member.spec.name, error)
        self._agent.close()
        self._control.close()
        self._approximate.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _repr_html_(self) -> str:
        return self.status()._repr_html_()

    def _ask_controller(self) -> tuple[Known, bool]:
        """What it knows of each query, and whether gates are open.

        A source gate arrives there, not here, so this is also where it is seen to be ready.
        """
        known, is_open = self._control.known()
        for name, entry in known.items():
            if name in self._members and (entry.phase != "idle" or entry.admissions):
                self._members[name].ready.set()
        return known, is_open

    def _notes(self) -> Notes:
        runs = {name: run for run, name in list(self._events.named.items())}
        queries = {
            m.spec.name: note(m, self._quality.of(m.spec.name), runs.get(m.spec.name))
            for m in self._all()
        }
        return Notes(self._app_name, self.gate_kind, queries)

    def _all(self) -> list[Member]:
        """A copy: queries come and go on other threads."""
        return list(self._members.values())

    def _refuse_duplicate(self, name: str) -> None:
        known = self._members.get(name)
        if known is not None and (known.query is not None or known.gate != "source"):
            raise UsageError(f"the fleet has a query named {name!r} already; give this one another")

    # -- events (on the agent's threads) --------------------------------------------------------

    def _on_command(self, command: Command) -> None:
        """Stopping a query waits for its batch, and grants must not wait for that."""
        threading.Thread(target=self._obey, args=(command,), daemon=True).start()

    def _obey(self, command: Command) -> None:
        action, name = command.action, str(command.query)
        try:
            if action == "pause":
                self.pause(name)
            elif action == "resume":
                self.resume(name)
            elif action == "policy":
                self.policy = str(command.policy)
                self._control.keep_policy(self.policy)
            else:
                self._quality.loop.enabled = action == "on"
        except Exception as error:
            log.error("%s: %s", action, error)

    def _on_ready(self, name: str) -> None:
        if name in self._members:
            self._members[name].ready.set()

    def _on_progress(self, name: str, progress: dict[str, Any]) -> None:
        member = self._members.get(name)
        if member is not None:
            member.ready.set()
            member.attempts = 0
        for sink in self._progress_sinks:
            sink(name, progress)

    def _on_terminated(self, run_id: str, exception: str | None) -> None:
        name = self._events.named.pop(run_id, None)
        member = self._members.get(name) if name else None
        if name is None or member is None:
            return
        self._agent.remove(name)
        if member.paused:  # it will be started again
            member.ready.set()
            return
        if exception is None or member.stopped:
            member.ended = True
            member.ready.set()
        else:
            self._restarter.failed(member, exception)
        if member.ended:
            self._quality.loop.remove(name)
