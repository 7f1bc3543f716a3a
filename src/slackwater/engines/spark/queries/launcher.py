"""Starts, pauses, stops and lets go the queries of a fleet.

The registry decides whether something may be done; Spark is then told to do it, by one thread at a
time for each query (``QueryRecord.life``).
"""

import contextlib
import logging
import threading
from collections.abc import Iterator
from dataclasses import replace

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.common.exceptions import first_line
from slackwater.common.listing import unknown_query
from slackwater.core.clock import Deadline
from slackwater.core.errors import EngineError, SlackwaterError, UsageError
from slackwater.core.windows import Deadlines
from slackwater.engines.spark.checkpoints.sinks import places_of
from slackwater.engines.spark.control.client import FleetControl, Known
from slackwater.engines.spark.gates.clock import (
    ClockGateUnavailable,
    execution_of,
    trigger_interval_s,
)
from slackwater.engines.spark.gates.execution import NotRaisable, setting_of
from slackwater.engines.spark.gates.watermark import WatermarkRaise, watermark_raise
from slackwater.engines.spark.plans.discovery import discover_query, output_mode
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.specs import max_wait_s
from slackwater.engines.spark.session.checkpoint_files import (
    MANAGER,
    is_elsewhere,
    renames,
    suit_checkpoints,
)
from slackwater.engines.spark.sources.row_limits import find_limited

log = logging.getLogger("slackwater.fleet")

START_LIMIT_S = 90.0  # how long a start may take to reach its first trigger
LOOK_S = 0.05  # between two looks at those that start


class Launcher:
    """Starts queries, a few at once, each with its gate on before its first trigger.

    Parameters
    ----------
    gate
        The gate that is put on: ``clock``, or any other for none. A source gate is in the query.
    at_once
        How many may be on their way to their first trigger.
    unraisable
        Why no watermark can be raised here; None: they can.
    """

    def __init__(
        self,
        spark: SparkSession,
        registry: Registry,
        agent: Agent,
        control: FleetControl,
        gate: str,
        at_once: int,
        unraisable: str | None = None,
    ) -> None:
        self.starts = threading.RLock()  # one start at a time
        self.closed = False  # nothing is started any more
        self._spark = spark
        self._suited: dict[str, int] = {}  # queries whose places were looked at, by birth
        self._registry = registry
        self._agent = agent
        self._control = control
        self._gate = "clock" if gate == "clock" else "none"
        self._at_once = at_once
        self._unraisable = unraisable
        if unraisable is not None:
            log.warning("windows take two batches: %s", unraisable)

    # -- starting -------------------------------------------------------------------------------

    def start(self, draft: QueryRecord) -> QueryRecord:
        """Start a query for the first time; the agent puts the gate on as its thread begins."""
        draft = replace(draft, gate=self._gate)
        with draft.life, self.starts:
            return self._launch(draft, self._registry.expect(draft))

    def relaunch(self, record: QueryRecord) -> None:
        """Start a query again, if nothing has happened to it since, and the fleet is open."""
        with record.life, self.starts:
            if self.closed:
                return
            again, mark = self._registry.expect_again(
                record.name, born=record.born, when=record.state
            )
            if again is None or mark is None:
                return
            try:
                self._go_on_from_checkpoint(again)
                self._launch(again, mark)
            except Exception as error:
                self._registry.fail(record.name, first_line(str(error)))
                raise

    def declare(self, draft: QueryRecord) -> QueryRecord:
        """Take in a table; its first run begins when it has a slot."""
        return self._registry.add(replace(draft, gate="none", state=State.RESTING, refreshed=True))

    def hold(self, query: StreamingQuery, draft: QueryRecord) -> None:
        """Take over a query that runs already."""
        state = State.STARTING if self._gate == "clock" else State.ACTIVE
        spec = replace(draft.spec, trigger_s=trigger_interval_s(query))
        draft = replace(
            draft, spec=spec, gate=self._gate, state=state, query=query, run=query.runId
        )
        self._check_checkpoint(spec.name, query)
        with draft.life:
            record = self._registry.add(draft)
            try:
                if record.gate == "clock":
                    self._agent.hold(record, query)
            except SlackwaterError:
                self._registry.remove(record.name, born=record.born)
                raise
            self._agent.row_limits.link(record.name, find_limited(query))
            self._plan_raise(record.name, query)

    def _suit_checkpoint(self, record: QueryRecord) -> None:
        """Have its checkpoint written as suits the place; that is looked at once."""
        assert record.writer is not None
        spark: SparkSession = getattr(record.writer, "_spark", self._spark)  # may be another
        if self._suited.get(record.name) == record.born or not renames(spark.conf.get(MANAGER, "")):
            return
        self._suited[record.name] = record.born
        try:
            suit_checkpoints(spark, places_of(record.writer, record.table, spark))
        except Exception as error:  # Spark will say so itself, if it matters
            log.info("%s: where it writes is not known: %s", record.name, first_line(str(error)))

    def _check_checkpoint(self, name: str, query: StreamingQuery) -> None:
        """Warn of a checkpoint that a running query writes in a way that does not suit."""
        try:
            found = self._agent.checkpoint(query)
            manager = setting_of(self._agent.handles, query, MANAGER)
            if found is None or not renames(manager):
                return
            if is_elsewhere(self._spark, [found.location]):
                log.warning(
                    "%s: its checkpoint is written in a way that is for this machine only, and is "
                    "not on it; let the fleet start the query, or see docs/lake.md",
                    name,
                )
        except Exception as error:
            log.info("%s: its checkpoint is not known: %s", name, first_line(str(error)))

    def _launch(self, record: QueryRecord, mark: str) -> QueryRecord:
        assert record.writer is not None
        try:
            self._suit_checkpoint(record)
            with self._agent.marked(mark):
                query = _start(record.writer, record.table)
            late = self._registry.begin(mark, query.name, query.id, query.runId)
        finally:
            self._registry.cancel(mark)
        begun = self._registry.of_run(query.runId)
        if begun is None:
            raise EngineError(f"{record.name} was taken out of the fleet as it started")
        name, run = begun.name, query.runId
        self._registry.update(name, run=run, query=query)
        if late is not None and late.gate == "clock":
            # The start was handled too late to be held before its first trigger: do it now.
            try:
                self._agent.hold(late, query)
            except ClockGateUnavailable as error:
                self._agent.unheld(late, error)
        if not begun.refreshed:
            self._agent.row_limits.link(name, find_limited(query))
        if begun.gate == "none":
            self._registry.update(name, run=run, when=(State.STARTING,), state=State.ACTIVE)
        if not begun.refreshed:  # a run reads all that is there, whichever windows end
            self._discover(begun, query)
            self._plan_raise(name, query)
        return self._registry.get(name) or begun

    def _discover(self, record: QueryRecord, query: StreamingQuery) -> None:
        """Read windows from the running query's plan: the writer does not show its plan."""
        interval_s = trigger_interval_s(query)
        if interval_s is not None:
            self._registry.revise(record.name, lambda spec: replace(spec, trigger_s=interval_s))
        if record.spec.deadlines == Deadlines():
            found = discover_query(query)
            wait_s = max_wait_s(record.stated_wait_s, found)
            self._registry.update(record.name, deadlines=found, max_wait_s=wait_s)
        elif record.gate == "source":  # its DataFrame does not tell
            mode = output_mode(query)
            self._registry.revise(
                record.name,
                lambda spec: replace(spec, deadlines=replace(spec.deadlines, output_mode=mode)),
            )

    def _plan_raise(self, name: str, query: StreamingQuery) -> None:
        """Find out whether its watermark can be raised, so that a window takes one batch."""
        record = self._registry.get(name)
        if record is None or not record.spec.deadlines.inputs:
            return
        appends = record.spec.deadlines.output_mode == "append"
        idle_s = record.spec.idle_after_s
        if not (appends or idle_s):
            return
        raises: WatermarkRaise | None = None
        at_clock = record.gate == "clock"
        why_two = (
            self._unraisable if at_clock else "its watermark can be raised only at a clock gate"
        )
        try:
            if at_clock and self._unraisable is None:
                raises, why_two = watermark_raise(
                    execution_of(query._jsq),
                    None if idle_s is None else round(1000 * idle_s),
                    record.told,
                    name,
                    record.may_raise,
                    self._agent.handles,
                )
        except NotRaisable as error:
            why_two = str(error)
        except Exception as error:  # a plan that cannot be read: two batches, as ever
            why_two = first_line(str(error))
        if raises is None and idle_s is not None:
            log.warning("%s: idle_after does nothing: %s", name, why_two)
        self._agent.raise_watermarks(query.runId, raises)
        self._registry.update(
            name,
            run=query.runId,
            one_batch=appends and why_two is None,
            why_two_batches=why_two if appends and record.spec.deadlines.marked else None,
        )

    def _go_on_from_checkpoint(self, record: QueryRecord) -> None:
        """Name the last run's checkpoint where Spark would make up another.

        Of a query that has failed, Spark keeps even a temporary one.
        """
        assert record.writer is not None
        if record.refreshed:  # its checkpoint was stated
            return
        assert record.query is not None
        found = self._agent.checkpoint(record.query)
        if found is None or not found.recovers:
            return
        if found.temporary or record.query.name is None:
            record.writer.option("checkpointLocation", found.location)

    # -- pausing and stopping -------------------------------------------------------------------

    def pause(self, name: str, *, by_hand: bool = True) -> None:
        """Stop a query until it is resumed; refuse if it has nothing to go on from."""
        with self._one(name) as record:
            if record.writer is None or (record.query is None and not record.refreshed):
                raise UsageError(f"the fleet has started no query named {name!r}")
            query = record.query
            if record.ended:
                raise UsageError(f"{name} cannot be paused: it has {record.state.value}")
            found = self._agent.checkpoint(query) if query and not record.refreshed else None
            if found is not None and found.temporary:
                raise UsageError(
                    f"{name} cannot be paused: it has no checkpointLocation to go on from, and "
                    "would read everything again"
                )
            by_hand = by_hand or record.by_hand
            self._registry.update(name, state=State.PAUSED, by_hand=by_hand)
            if query is not None:
                query.stop()

    def resume(self, name: str, *, by_hand: bool = True) -> None:
        """Let a query go on from its checkpoint, if it was paused and is ours to resume."""
        with self._one(name) as record:
            if record.writer is None:
                raise UsageError(f"the fleet has started no query named {name!r}")
            if record.state is State.PAUSED and (by_hand or not record.by_hand):
                if record.refreshed:  # when it is due, and there is a slot
                    self._registry.update(name, state=State.RESTING, by_hand=False)
                else:
                    self.relaunch(record)

    def stop(self, record: QueryRecord) -> None:
        """Stop a query for good, whichever run it has now, if it is still the same query."""
        with record.life:
            present = self._registry.get(record.name)
            if present is None or present.born != record.born:
                present = record  # no longer ours
            elif not present.ended:
                self._registry.update(record.name, state=State.STOPPED)
            if present.query is not None:
                present.query.stop()

    def stop_and_forget(self, name: str) -> None:
        """Stop a query and take it out."""
        with self._one(name) as record:
            self.stop(record)
            self._registry.remove(name, born=record.born)

    def forget(self, name: str) -> None:
        """Take out a query that does not run; leave one that does."""
        with contextlib.suppress(UsageError), self._one(name) as record:
            if not record.running:
                self._registry.remove(name, born=record.born)

    def release(self, name: str) -> None:
        """Take out a query that goes on as plain Spark."""
        with self._one(name) as record:
            if record.gate == "source":
                raise UsageError(f"{name} is gated by its source: stop it, `slackwater release` it")
            self._registry.remove(name, born=record.born)

    def close(self) -> None:
        """Stop the queries that were started here, and start nothing any more."""
        self.closed = True
        for record in self._registry.all():
            if record.writer is not None:
                try:
                    self.stop(record)
                except Exception as error:
                    log.warning("%s did not stop cleanly: %s", record.name, error)

    @contextlib.contextmanager
    def _one(self, name: str) -> Iterator[QueryRecord]:
        """Yield the query as it is, while nobody else starts, stops or takes it out."""
        record = self._registry.get(name)
        if record is not None:
            with record.life:
                present = self._registry.get(name)
                if present is not None and present.born == record.born:
                    yield present
                    return
        raise unknown_query(name, [record.name for record in self._registry.all()])

    # -- waiting --------------------------------------------------------------------------------

    def await_turn(self) -> None:
        """Wait until another query may start."""
        limit = Deadline(START_LIMIT_S)
        while len(self.starting()) >= self._at_once and not limit.passed:
            self._registry.wait_change(LOOK_S)

    def starting(self) -> list[QueryRecord]:
        """Return queries on their way to the first trigger, also those to be tried again."""
        under_way = (State.STARTING, State.RESTARTING)
        found = [r for r in self._registry.all() if r.query is not None and r.state in under_way]
        if any(record.gate == "source" for record in found):
            with contextlib.suppress(SlackwaterError):
                self.look()
            found = [r for r in self._registry.all() if r.query and r.state in under_way]
        return found

    def look(self) -> tuple[Known, bool]:
        """Return what the controller knows of each query, and whether gates are open.

        A source gate arrives there, not here, so this is also where it is seen to be ready.
        """
        known, is_open = self._control.known()
        for name, entry in known.items():
            if entry.phase != "idle" or entry.admissions:
                self._registry.update(name, when=(State.STARTING,), state=State.ACTIVE)
        return known, is_open


def _start(writer: DataStreamWriter, table: str | None) -> StreamingQuery:
    return writer.start() if table is None else writer.toTable(table)
