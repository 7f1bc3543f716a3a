"""Tables that are refreshed by runs, a few at once: each run is a query that begins and ends."""

import logging
import math
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Literal, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.readwriter import DataStreamWriter

from slackwater.core.clock import Deadline, RealClock
from slackwater.core.errors import UsageError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.checkpoints.files import open_folder
from slackwater.engines.spark.checkpoints.offset_log import last_commit_s
from slackwater.engines.spark.queries.agent import TurnSink
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.specs import (
    Duration,
    query_spec,
    refuse_no_writer,
    seconds,
    stated_wait_s,
)
from slackwater.engines.spark.queries.timetable import Timetable

log = logging.getLogger("slackwater.fleet")

LOOK_S, LONGEST_LOOK_S = 0.5, 60.0  # between two looks: while some wait for a slot, and while not
TRIES = 5  # of a table that is refreshed once
RunTrigger = Literal["availableNow", "once"]


class Turns(Protocol):
    """Who gives slots: the agent, for the controller."""

    @property
    def hold_s(self) -> float | None:
        """How long to wait at least, as the load asks; None: nobody gives slots, go ahead."""

    def on_turn(self, sink: TurnSink) -> None:
        """Call ``sink`` when a table has a slot."""

    def ask_turn(self, record: QueryRecord) -> bool:
        """Ask for a slot; return whether there is somebody to give it."""


class Starts(Protocol):
    """Who starts runs: the launcher."""

    def declare(self, draft: QueryRecord) -> QueryRecord:
        """Take in a table."""

    def relaunch(self, record: QueryRecord) -> None:
        """Start a run of a table that is still as it was."""


class Refresher:
    """A thread that starts the runs of tables, the stalest first.

    A run takes a slot of the controller's like a micro-batch, until it has ended. It cannot be
    held in between, so there is a bound of its own: runs are to leave slots to the others.

    Parameters
    ----------
    at_once
        Runs at once, at most.
    """

    def __init__(
        self,
        registry: Registry,
        launcher: Starts,
        turns: Turns,
        at_once: int,
        clock: Clock = RealClock(),
    ) -> None:
        self.at_once = at_once
        self.timetable = Timetable(clock)
        self._registry = registry
        self._launcher = launcher
        self._turns = turns
        self._clock = clock
        self._asked: dict[str, Deadline] = {}  # tables that wait, and how long they do at most
        self._granted: set[str] = set()  # tables that have a slot
        self._wake = threading.Event()
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None
        turns.on_turn(self._on_turn)
        registry.subscribe(self._on_change)

    def add(
        self, draft: QueryRecord, every_s: float | None, refreshed_s: float | None = None
    ) -> None:
        """Take in a table; see :meth:`Timetable.add`."""
        if self._closing.is_set():
            raise UsageError("the fleet has been stopped: make another Fleet")
        name = draft.name
        self._launcher.declare(draft)
        self.timetable.add(name, every_s, draft.spec.priority, refreshed_s)
        self._registry.update(name, freshness=partial(self.timetable.freshness, name))
        self._wake.set()

    def start(self) -> None:
        """Start the thread, if it does not run yet."""
        if self._thread is None:
            self._thread = threading.Thread(
                target=self._run, name="slackwater-refreshes", daemon=True
            )
            self._thread.start()

    def close(self, timeout_s: float) -> None:
        """Start nothing any more, and wait for runs to end, at most so long."""
        self._closing.set()
        self._wake.set()
        if self._thread is not None:
            limit = Deadline(timeout_s, self._clock)
            self._thread.join(timeout=limit.left_s)
            while self._running() and not limit.passed:
                self._registry.wait_change(min(0.1, limit.left_s))

    # -- the loop -------------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.is_set():
            self._wake.clear()
            try:
                next_s = self.look()
            except Exception:
                log.exception("tables could not be looked at; going on")
                next_s = 1.0
            # While some wait for a slot, the controller may be lost.
            self._wake.wait(min(next_s, LOOK_S if self._asked else LONGEST_LOOK_S))

    def look(self) -> float:
        """Note which runs have ended, begin others; return for how long there is nothing to do."""
        for record in self._tables():
            self._note_end(record)
        for record in self._tables():
            if record.state is State.WAITING and self._may_begin(record.name):
                self._begin(record)
        resting = {each.name: each for each in self._tables() if each.state is State.RESTING}
        free = max(0, self.at_once - len(self._running()) - len(self._asked))
        due = [name for name in self.timetable.due() if name in resting]
        for name in due[:free]:
            self._ask(resting.pop(name))
        # A copy: somebody may take a table out meanwhile.
        left_s = min((limit.left_s for limit in list(self._asked.values())), default=math.inf)
        if len(due) < free:
            left_s = min(left_s, self.timetable.next_s(resting.keys()))
        return left_s

    def _note_end(self, record: QueryRecord) -> None:
        """Note how the last run of a table has ended, if it has."""
        name = record.name
        if record.state is not State.WAITING:
            self._asked.pop(name, None)
            self._granted.discard(name)
        if not self.timetable.runs(name) or record.state in (State.STARTING, State.ACTIVE):
            return
        if record.state is not State.RESTING:  # paused or stopped
            self.timetable.interrupt(name)
        elif record.error is None:
            self.timetable.succeed(name)
        else:
            self.timetable.fail(name)
            log.warning("%s was not refreshed, the others go on: %s", name, record.error)
        self._retire(record)

    def _retire(self, record: QueryRecord) -> None:
        """End a table that was to be refreshed once, and was, or cannot be."""
        found = self.timetable.freshness(record.name)
        if found is None or found.every_s is not None:
            return
        resting = (State.RESTING,)
        if record.error is None:
            self._registry.update(record.name, when=resting, state=State.STOPPED)
        elif found.failures >= TRIES:
            self._registry.update(record.name, when=resting, state=State.FAILED)

    def _ask(self, record: QueryRecord) -> None:
        """Ask for a slot; where nobody gives one, begin."""
        waiting = self._registry.update(record.name, when=(State.RESTING,), state=State.WAITING)
        if waiting is None:
            return
        if self._turns.ask_turn(waiting):
            wait_s = max(waiting.spec.max_wait_s, self._turns.hold_s or 0.0)
            self._asked[record.name] = Deadline(wait_s, self._clock)
        else:
            self._begin(waiting)

    def _may_begin(self, name: str) -> bool:
        """Tell whether a table has its slot, or has waited for as long as any gate holds."""
        limit = self._asked.get(name)
        return name in self._granted or limit is None or limit.passed or self._turns.hold_s is None

    def _begin(self, record: QueryRecord) -> None:
        self._asked.pop(record.name, None)
        self._granted.discard(record.name)
        self.timetable.begin(record.name)
        try:
            self._launcher.relaunch(record)
        except Exception as error:  # the registry has it, and the table is tried again
            log.debug("%s could not be started: %s", record.name, error)
        self._wake.set()  # a run may have ended already

    # -- what others say ------------------------------------------------------------------------

    def _on_turn(self, name: str) -> None:
        self._granted.add(name)
        self._wake.set()

    def _on_change(self, old: QueryRecord | None, new: QueryRecord) -> None:
        if not new.refreshed or old is None or old.state is new.state:
            return
        if new.state is State.RELEASED:
            self.timetable.remove(new.name)
            self._asked.pop(new.name, None)
        self._wake.set()

    def _tables(self) -> list[QueryRecord]:
        return [record for record in self._registry.all() if record.refreshed]

    def _running(self) -> list[QueryRecord]:
        runs = (State.STARTING, State.ACTIVE)
        return [record for record in self._tables() if record.state in runs]


class RefreshedTables:
    """The part of :class:`~slackwater.engines.spark.fleet.Fleet` that refreshes tables."""

    spark: SparkSession
    max_wait: float | None
    _refresher: Refresher
    _refuse_stopped: Callable[[], None]
    _make_room: Callable[[str | None], None]

    def refresh(
        self,
        writer: DataStreamWriter,
        *,
        name: str,
        checkpoint: str | Path,
        every: Duration | None = None,
        trigger: RunTrigger = "availableNow",
        priority: float = 1.0,
        max_wait: Duration | None = None,
        table: str | None = None,
    ) -> None:
        """Run ``df.writeStream…`` now and then; each run reads all that is there, and ends.

        Of all tables that are due the stalest goes first: age ÷ ``every`` × priority. A run takes
        a slot, as micro-batches do, and at most ``runs_at_once`` run at once. If one fails, the
        table is tried again after a while, and after a longer while each time.

        Parameters
        ----------
        checkpoint
            Of the query, also an address (``s3a://…``). After a restart its newest commit tells
            how stale the table is.
        every
            How old the results may be: seconds, or a text such as ``"10 minutes"``. None: the
            table is refreshed once, and has stopped then.
        trigger
            ``availableNow`` reads in as many batches as the source's limits ask for, ``once`` in
            one.
        priority
            Larger is more important.
        max_wait
            Seconds, or a text, that a run waits for a slot at most.
        table
            See :meth:`start`.
        """
        refuse_no_writer(writer, "refresh")
        self._refuse_stopped()
        if trigger not in ("availableNow", "once"):
            raise UsageError(f"{name}: trigger is availableNow or once, not {trigger!r}")
        every_s = seconds(f"{name}: every", every)
        wait_s = stated_wait_s(max_wait, self.max_wait, f"{name}: max_wait")
        spec = query_spec(name, priority, wait_s, None)
        self._make_room(name)
        writer = writer.queryName(name).option("checkpointLocation", str(checkpoint))
        writer = (
            writer.trigger(once=True) if trigger == "once" else writer.trigger(availableNow=True)
        )
        draft = QueryRecord(
            spec, "none", State.RESTING, writer=writer, table=table, stated_wait_s=wait_s
        )
        self._refresher.add(draft, every_s, last_commit_s(open_folder(checkpoint, self.spark)))
        self._refresher.start()
