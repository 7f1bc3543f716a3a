"""One query of a fleet at one moment: what it is, and where in its life."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from slackwater.core.model import QuerySpec

if TYPE_CHECKING:  # the command line reads states without loading Spark
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from slackwater.engines.spark.sources.frontier import ToldFrontier


class Accuracies(NamedTuple):
    """How much of its input a query processes; all between 0 and 1."""

    minimum: float  # as its user stated it
    desired: float  # what the controller wants
    current: float | None  # what is processed of what comes and waits
    delivered: float | None  # what came through its shedders in the last seconds, counted


class Freshness(NamedTuple):
    """How stale a table is that is refreshed by runs."""

    state: str  # fresh, due, running, retrying
    every_s: float | None  # how old its results may be; None: it is refreshed once
    refreshed_s: float | None  # when its last run that succeeded began, since the epoch
    failures: int  # in a row
    age_s: float | None  # of its results


class State(Enum):
    """Where a query is in its life."""

    DECLARED = "declared"  # its DataFrame has a source gate, but nobody has started it
    RESTING = "resting"  # a table between two runs
    WAITING = "waiting"  # a table whose next run waits for a slot
    STARTING = "starting"  # on its way to its first trigger
    ACTIVE = "active"
    PAUSED = "paused"  # by hand or for want of CPU; it goes on from its checkpoint
    RESTARTING = "restarting"  # it lost a Python process and is about to be started again
    STOPPED = "stopped"  # by somebody, or it had nothing more to do
    FAILED = "failed"
    RELEASED = "released"  # out of the fleet; the last that subscribers hear of it


# Every change of state that there is:
#  1. DECLARED   -> STARTING    started, by the fleet or by its user
#  2. STARTING   -> ACTIVE      reached its first trigger, or has no gate to reach
#  3. STARTING, ACTIVE, RESTARTING -> PAUSED
#  4. PAUSED     -> STARTING    resumed
#  5. STARTING, ACTIVE -> RESTARTING    lost a Python process
#  6. RESTARTING -> STARTING    started again
#  7. all that have not ended -> STOPPED
#  8. all that have not ended -> FAILED    by itself, or it could not be started
#  9. STOPPED, FAILED, ACTIVE -> STARTING    gated by its source and started by its user once more
#     (the end of its last run may be heard of later)
# 10. all -> RELEASED
# Of tables that are refreshed by runs, instead of 4, 5 and 6, and of 8 unless it is given up:
# 11. RESTING    -> WAITING     its next run is due, and asks for a slot
# 12. WAITING    -> STARTING    it has one
# 13. STARTING, ACTIVE -> RESTING    its run has ended, well or not
# 14. PAUSED     -> RESTING     resumed
# 15. RESTING, WAITING -> PAUSED
_OUT = {State.STOPPED, State.FAILED, State.RELEASED}
TRANSITIONS: dict[State, frozenset[State]] = {
    State.DECLARED: frozenset({State.STARTING, *_OUT}),
    State.RESTING: frozenset({State.WAITING, State.PAUSED, *_OUT}),
    State.WAITING: frozenset({State.STARTING, State.PAUSED, *_OUT}),
    State.STARTING: frozenset({State.ACTIVE, State.PAUSED, State.RESTARTING, State.RESTING, *_OUT}),
    State.ACTIVE: frozenset({State.STARTING, State.PAUSED, State.RESTARTING, State.RESTING, *_OUT}),
    State.PAUSED: frozenset({State.STARTING, State.RESTING, *_OUT}),
    State.RESTARTING: frozenset({State.STARTING, State.PAUSED, *_OUT}),
    State.STOPPED: frozenset({State.STARTING, State.RELEASED}),
    State.FAILED: frozenset({State.STARTING, State.RELEASED}),
    State.RELEASED: frozenset(),
}
# The controller knows these.
PRESENT = frozenset({State.DECLARED, State.WAITING, State.STARTING, State.ACTIVE})
ENDED = frozenset({State.STOPPED, State.FAILED, State.RELEASED})  # not to run again by itself


@dataclass(frozen=True)
class QueryRecord:
    """One query at one moment."""

    spec: QuerySpec
    gate: str  # clock, source, none
    state: State = State.STARTING
    writer: DataStreamWriter | None = None  # to start it again; None: it is the user's to start
    table: str | None = None  # of a catalog, that it writes to; None: where its writer says
    query: StreamingQuery | None = None  # its present run
    run: str | None = None  # and the id of that
    stated_wait_s: float | None = None  # max_wait as its user gave it
    may_raise: bool = True  # its user lets its watermark be raised ahead of Spark
    in_pieces: bool = False  # its user says that what waits can be read in pieces
    told: ToldFrontier | None = None  # how far its inputs have come, as its user tells it
    why_two_batches: str | None = None  # why a window takes two batches, where one would do
    refreshed: bool = False  # a table: it runs now and then and reads all that is there
    by_hand: bool = False  # it was a person who paused it, and only a person has it go on
    error: str | None = None
    restarts: int = 0  # in all
    attempts: int = 0  # since its last batch
    accuracy: Callable[[], Accuracies | None] = lambda: None  # asked when it is shown
    freshness: Callable[[], Freshness | None] = lambda: None  # of a table, likewise
    version: int = 0  # of all records of a registry, the newest has the largest
    born: int = 0  # the version that it began with: another query of the same name has another
    # Held while it is started, stopped or taken out: one thread at a time does so.
    life: threading.RLock = field(default_factory=threading.RLock, compare=False, repr=False)

    @property
    def name(self) -> str:
        return self.spec.name

    @property
    def present(self) -> bool:
        """Whether it runs, or is about to, and so concerns the controller."""
        return self.state in PRESENT

    @property
    def ended(self) -> bool:
        """Whether it will not run again by itself."""
        return self.state in ENDED

    @property
    def unstarted(self) -> bool:
        """Whether its user may still start or replace it: gated by its source, not running."""
        declared = self.state is State.DECLARED or self.ended
        return self.gate == "source" and self.writer is None and declared

    @property
    def running(self) -> bool:
        """Whether Spark says that it runs."""
        return self.query is not None and self.query.isActive
