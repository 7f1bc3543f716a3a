"""The fleet: many streaming queries of one Spark application under one policy."""

import threading
from math import ceil
from typing import Any, Literal, Self

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater import policies
from slackwater.core.errors import UsageError
from slackwater.core.model import default_slots
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.approximate.fleet import ApproximateQueries, Approximations
from slackwater.engines.spark.control.client import FleetControl
from slackwater.engines.spark.control.service import ControllerSettings
from slackwater.engines.spark.gates import source as source_gate
from slackwater.engines.spark.gates.choice import GateKind, choose_gate
from slackwater.engines.spark.gates.execution import probe_raise
from slackwater.engines.spark.plans.discovery import discover, discover_query
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.forwarding import FleetParts
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.refreshes import RefreshedTables, Refresher
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.restarts import Restarter
from slackwater.engines.spark.queries.specs import (
    Duration,
    query_spec,
    refuse_fewer_than_one,
    refuse_no_writer,
    refuse_unknown_choice,
    seconds,
    stated_wait_s,
    warn_of_progress_without_data,
)
from slackwater.engines.spark.queries.view import FleetView
from slackwater.engines.spark.session.versions import refuse_connect
from slackwater.engines.spark.shedding.fleet import FleetQuality
from slackwater.engines.spark.shedding.loop import QualitySettings
from slackwater.engines.spark.shedding.switches import FleetSwitches
from slackwater.engines.spark.sources.frontier import ToldFrontier
from slackwater.engines.spark.sources.row_limits import find_limited
from slackwater.ipc.client import refuse_if_answered
from slackwater.ipc.unix_socket import default_fleet_name, socket_path

SETTLE_LIMIT_S = 5.0  # how long stopping waits for running batches to end


class Fleet(FleetView, FleetSwitches, ApproximateQueries, RefreshedTables):
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
        Seconds, or a text such as ``"2 seconds"``, that a micro-batch waits at most, unless the
        load leaves no time for that; a query may have its own. Default: 10, or two and a half
        times the distance of its windows if that is longer.
    controller
        ``process`` (a process of its own) or ``thread``.
    dry_run
        Decide, but hold nothing.
    parameters
        For the policy's constructor.
    quality
        How queries with a ``min_accuracy`` are shed.
    one_batch
        ``auto``: where it is known how far the inputs have come, the watermark is raised as a
        batch begins, so that a window takes one batch. ``off``: Spark alone moves it.
    runs_at_once
        How many tables are refreshed at once, at most. Default: half of the slots.

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
        max_wait: Duration | None = None,
        controller: Literal["process", "thread"] = "process",
        dry_run: bool = False,
        starts_at_once: int = 4,
        parameters: dict[str, Any] | None = None,
        quality: QualitySettings | None = None,
        one_batch: Literal["auto", "off"] = "auto",
        runs_at_once: int | None = None,
    ) -> None:
        refuse_connect(spark)
        refuse_fewer_than_one(slots=slots, runs_at_once=runs_at_once)
        refuse_unknown_choice(one_batch)
        given = parameters or {}
        self._gated = policies.load(policy, **given).gated  # wrong names fail here
        self.spark = spark
        self.policy = policy
        self.name = name or default_fleet_name()
        self.slots = slots or default_slots(spark.sparkContext.defaultParallelism)
        self.max_wait = seconds("max_wait", max_wait)
        self.one_batch = one_batch
        self.gate_kind, self.gate_reason = choose_gate(spark, gate)
        warn_of_progress_without_data(spark)
        self.socket = socket_path(self.name)
        refuse_if_answered(self.socket, self.name)
        self._closing = threading.Event()
        settings = ControllerSettings(str(self.socket), policy, self.slots, dry_run, given)
        self._control = FleetControl(settings, controller)
        self._registry = Registry()
        self._agent = Agent(
            spark,
            self.socket,
            self._registry,
            self.gate_kind,
            self._on_command,
            follow_cores=slots is None,
        )
        holds = self._gated and not dry_run
        held = self.gate_kind if self._gated else "none"
        unraisable = probe_raise(spark) if held == "clock" else None
        self._launcher = Launcher(
            spark, self._registry, self._agent, self._control, held, starts_at_once, unraisable
        )
        self._restarter = Restarter(self._registry, self._launcher)
        at_once = runs_at_once or ceil(self.slots / 2)
        self._refresher = Refresher(self._registry, self._launcher, self._agent, at_once)
        self._quality = FleetQuality(spark, quality, self._registry, self._launcher)
        self.on_progress(self._quality.take)
        self.parts = FleetParts(self._registry, self._agent, self._launcher.look)
        self.on_progress(self.parts.take)
        can_hold = holds and self.gate_kind != "none"
        self._approximations = Approximations(self._registry, self._agent, can_hold)
        self._agent.link.start()  # last: what is commanded needs all of the above
        if holds:
            self._control.await_held(self._agent.link)

    def start(
        self,
        writer: DataStreamWriter,
        *,
        name: str | None = None,
        priority: float = 1.0,
        max_wait: Duration | None = None,
        deadlines: Deadlines | None = None,
        min_accuracy: float | None = None,
        target: Duration | None = None,
        one_batch: Literal["auto", "off"] | None = None,
        idle_after: Duration | None = None,
        in_pieces: bool = False,
        frontier: ToldFrontier | None = None,
        table: str | None = None,
    ) -> StreamingQuery:
        """Start ``df.writeStream…`` held: not even its first micro-batch runs before its grant.

        A few queries start at once, others wait here for their turn. If the query fails because it
        lost a Python process of a source, it is started again from its checkpoint. One that has
        ended gives its name to the next.

        Parameters
        ----------
        priority
            Larger is more important.
        min_accuracy
            The least part of its input that the query must process. When input outgrows the
            machine, rows are dropped down to this, those of less important queries first. Its
            rows must be ``sheddable``. None: nothing is dropped, ever.
        target
            Seconds, or a text such as ``"2 seconds"``. Of windows in append mode: from a window's
            end to its result. Of all other queries: how old results may be, which ``klink`` keeps
            with as few batches as it can. None: as fresh as there is room. Status, page and
            metrics count the results that kept it, and those that did not.
        one_batch
            Instead of the fleet's.
        idle_after
            Seconds, or a text: an input that has told nothing for so long holds up no window and no
            other input. Rows that it brings later may be dropped. None: windows wait for it.
        in_pieces
            A backlog may be read in pieces that fit into memory, at Spark's own sources too, though
            the query has a watermark: rows come in the order of their event times, but for the
            watermark's delay. Without a watermark nothing can be late, and it always is.
        frontier
            Tells, given the query's name, the newest event time that has arrived (seconds since
            the epoch), or a mapping of it by input, left to right. It must answer at once and may
            be late, never early, and no limit may keep a batch from reading so far. Our sources,
            Spark's rate and its Kafka on ``timestamp`` need none; for times in Kafka's payload
            there is :func:`kafka_frontier`.
        table
            Write to a table of a catalog, as ``writer.toTable`` does. None: where the writer says.
        """
        refuse_no_writer(writer, "start")
        self._refuse_stopped()
        self._make_room(name)
        self._refuse_ungated(name)
        stated_s = stated_wait_s(max_wait, self.max_wait)
        spec = query_spec(name or "", priority, stated_s, deadlines, target, idle_after)
        may_raise = refuse_unknown_choice(one_batch or self.one_batch) == "auto"
        self._launcher.await_turn()
        with self._launcher.starts:
            if min_accuracy is not None:
                self._quality.prepare(name, writer, min_accuracy)
            if name is not None:
                writer = writer.queryName(name)
            draft = QueryRecord(
                spec,
                "none",
                writer=writer,
                stated_wait_s=stated_s,
                may_raise=may_raise,
                in_pieces=in_pieces,
                told=frontier,
                table=table,
            )
            record = self._launcher.start(draft)
        self._quality.add(record, min_accuracy)
        return self._handle(record)

    def hold(
        self,
        query: StreamingQuery,
        *,
        name: str | None = None,
        priority: float = 1.0,
        max_wait: Duration | None = None,
        deadlines: Deadlines | None = None,
        target: Duration | None = None,
        one_batch: Literal["auto", "off"] | None = None,
        idle_after: Duration | None = None,
        in_pieces: bool = False,
        frontier: ToldFrontier | None = None,
    ) -> StreamingQuery:
        """Take over a query that runs already, with its checkpoint as it is (clock gate).

        Parameters are those of :meth:`start`. An interval of its trigger stays.
        """
        self._refuse_stopped()
        if self.gate_kind == "source":
            raise UsageError(f"a running query can be held only by its clock: {self.gate_reason}")
        name = name or query.name or f"query-{query.id[:8]}"
        self._make_room(name)
        stated_s = stated_wait_s(max_wait, self.max_wait)
        found = deadlines or discover_query(query)
        spec = query_spec(name, priority, stated_s, found, target, idle_after)
        draft = QueryRecord(
            spec,
            "none",
            stated_wait_s=stated_s,
            may_raise=refuse_unknown_choice(one_batch or self.one_batch) == "auto",
            in_pieces=in_pieces,
            told=frontier,
        )
        self._launcher.hold(query, draft)
        return query

    def gate(
        self,
        df: DataFrame,
        name: str,
        *,
        priority: float = 1.0,
        max_wait: Duration | None = None,
        deadlines: Deadlines | None = None,
    ) -> DataFrame:
        """Return ``df`` behind a source gate: write it with ``writeStream``, named ``name``.

        Start it with :meth:`start` and it is also started again if its gate's process is killed.
        """
        self._refuse_stopped()
        found = discover(df)
        source_gate.refuse_ungatable(name, df, len(found.inputs))
        self._make_room(name)
        stated_s = stated_wait_s(max_wait, self.max_wait)
        spec = query_spec(name, priority, stated_s, deadlines or found)
        self._registry.add(QueryRecord(spec, "source", State.DECLARED, stated_wait_s=stated_s))
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

    def stop(self) -> None:
        """Stop the queries that the fleet started, let the others go, end the controller."""
        if self._closing.is_set():
            return
        self._closing.set()
        self._launcher.closed = True
        self._refresher.close(SETTLE_LIMIT_S)
        self._restarter.close()
        self._quality.loop.close()
        self._agent.settle(SETTLE_LIMIT_S)
        self._launcher.close()
        self._agent.close()
        self._control.close()
        self._approximations.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
