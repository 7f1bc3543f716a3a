"""What the driver tells the controller beside its queries: memory, cores, notes, slow sinks."""

import logging
from collections.abc import Callable, Iterable, Mapping

from msgspec import UNSET
from pyspark.sql import SparkSession

from slackwater.core.protocols import Clock
from slackwater.engines.spark.gates.heap import Heap
from slackwater.engines.spark.gates.sinks import SinkWatch, active_runs
from slackwater.engines.spark.progress import known_progress, ran_a_batch
from slackwater.engines.spark.queries.held import Held
from slackwater.engines.spark.queries.record import QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.status import note
from slackwater.ipc.messages import History, InSinks, MemoryUse, Note, Notes

log = logging.getLogger("slackwater.fleet")

MEMORY_PERIOD_S = 1.0  # along with an arrival, which costs the controller nothing more
MEMORY_ALONE_S = 2.0  # and by itself when there are none
NOTES_PERIOD_S = 1.0  # between two looks whether something is to be noted
NOTES_AGAIN_S = 5.0  # for a controller that was started anew
REMEMBERED = 8  # batches of a query that a new controller is told of
SINKS_PERIOD_S = 0.5  # between two looks at batches that have run for long


class Reporter:
    """Remembers what was told and when, so that little is told twice.

    Parameters
    ----------
    gate
        Which gate the fleet has, for those who watch.
    follow_cores
        Tell how many cores there are: the controller's slots follow them.
    thread_cpu_s
        Returns the CPU time that the thread of a run has used so far, if it can be seen.
    """

    def __init__(
        self,
        spark: SparkSession,
        registry: Registry,
        gate: str,
        clock: Clock,
        follow_cores: bool,
        thread_cpu_s: Callable[[str], float | None],
    ) -> None:
        self._registry = registry
        self._gate = gate
        self._clock = clock
        self._app_name = spark.sparkContext.appName
        self._heap = Heap(spark, follow_cores)
        self._sinks = SinkWatch(active_runs(spark), thread_cpu_s)
        self._memory_told_s = 0.0
        self._noted: Notes | None = None
        self._looked_at: dict[str, tuple[QueryRecord, Note]] = {}  # by query, at the last look
        self._noted_s = self._compared_s = self._sinks_s = 0.0
        self._in_sinks: set[str] = set()  # that were told

    def forget(self) -> None:
        """Tell everything again: the controller may be another one."""
        self._noted, self._in_sinks = None, set()

    @property
    def due(self) -> bool:
        """Whether something may be to be told that goes with no report."""
        memory_s = self._memory_told_s + MEMORY_ALONE_S
        looks_s = min(self._compared_s + NOTES_PERIOD_S, self._sinks_s + SINKS_PERIOD_S)
        return self._clock.monotonic() >= min(memory_s, looks_s)

    def memory(self, period_s: float) -> list[MemoryUse]:
        """Return the state of the heap, if it was last told so long ago."""
        now_s = self._clock.monotonic()
        if now_s < self._memory_told_s + period_s:
            return []
        self._memory_told_s = now_s
        try:
            return [self._heap.message()]
        except Exception as error:  # must not cost the report that is in hand
            log.info("the heap cannot be read: %s", error)
            return []

    def history(self, held: Iterable[Held]) -> list[History]:
        """Return what batches have cost so far: the controller may have been started anew."""
        found = []
        for one in held:
            record = self._registry.of_run(one.gate.run)
            batches = map(known_progress, filter(ran_a_batch, one.view.recent(REMEMBERED)))
            known = tuple(batch for batch in batches if batch is not None)
            if record is not None and record.run == one.gate.run and record.present and known:
                found.append(History(record.name, known))
        return found

    def notes(self) -> list[Notes]:
        """Return what only we know of the queries, if it has changed; now and then all the same."""
        now_s = self._clock.monotonic()
        if now_s < self._compared_s + NOTES_PERIOD_S:
            return []
        self._compared_s = now_s
        self._looked_at = {r.name: (r, self._note(r)) for r in self._registry.all()}
        notes = {name: each for name, (_, each) in self._looked_at.items()}
        found = Notes(self._app_name, self._gate, notes)
        if found == self._noted and now_s < self._noted_s + NOTES_AGAIN_S:
            return []
        self._noted, self._noted_s = found, now_s
        return [found]

    def _note(self, record: QueryRecord) -> Note:
        """Return the note of a query; most are the same as at the last look."""
        known, before = self._looked_at.get(record.name, (None, Note()))
        moves = before.accuracy is not None or before.table is not UNSET
        if known is not record or moves or record.accuracy() or record.freshness():
            return note(record)
        return before

    def sinks(self, granted: Mapping[str, float]) -> list[InSinks]:
        """Return the queries whose batches only wait for their sinks, if they are others now.

        Parameters
        ----------
        granted
            When the batch of each run was let in, of those that run one.
        """
        now_s = self._clock.monotonic()
        if now_s < self._sinks_s + SINKS_PERIOD_S:
            return []
        self._sinks_s = now_s
        try:
            runs = self._sinks.look(granted, now_s)
        except Exception as error:  # a batch that waits keeps its slot, as it used to
            log.info("the jobs of Spark cannot be seen: %s", error)
            runs = set()
        records = (self._registry.of_run(run) for run in runs)
        found = {record.name for record in records if record is not None}
        if found == self._in_sinks:
            return []
        for name in found - self._in_sinks:
            log.info("%s waits for its sink: its slot is given to others meanwhile", name)
        self._in_sinks = found
        return [InSinks(tuple(sorted(found)))]
