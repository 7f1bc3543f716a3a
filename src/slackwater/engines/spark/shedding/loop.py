"""The quality controller at work in one driver: measures queries, sets their shedders."""

import logging
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from slackwater.common.procfs import MachineMeter
from slackwater.core.clock import RealClock
from slackwater.core.protocols import Clock
from slackwater.engines.spark.shedding.meter import Needs, QualityMeter
from slackwater.engines.spark.shedding.shedders import Shedders
from slackwater.quality import (
    Accuracy,
    Cluster,
    Graph,
    Layout,
    Load,
    QualityController,
    QualityDecision,
    Task,
    WarmUps,
)
from slackwater.quality.accuracies.lag import Lag
from slackwater.quality.rates import NO_SHEDDING

log = logging.getLogger("slackwater.quality")

WORKER = "driver"
FIRST_ROWS = 1000  # of a micro-batch, while nothing is known
LONGEST = 1.1  # a micro-batch takes no longer than so many times the usual
ORDER_LASTS_S = 10.0  # what a supervisor said; then this worker decides alone
SCARCE = 0.1  # of the cores left over, below which batches become fewer
LATELY = 0.8  # what is kept, each cycle, of what was measured before
SLOWLY = 0.1  # accuracy rises by so much a cycle at most; it falls at once


@dataclass(frozen=True, kw_only=True)
class QualitySettings:
    """How queries are shed."""

    period_s: float = 1.0  # of the cycle
    headroom: float = 0.05  # part of the CPU that is not given away
    batch_every_s: float = 1.0  # how long may lie between two micro-batches of a query
    drain_s: float = 2.0  # how long a backlog may take to go
    patience: int = 10  # cycles that minimums must not fit before a query is stopped
    warmup_s: float = 30.0  # limit of a warm-up
    counts_others: bool = True  # whether CPU that other processes use is out of reach
    pauses: bool = True  # whether queries are stopped here; a supervisor does it itself
    watches_all: bool = False  # also queries that are never shed, for what they cost
    cpus: frozenset[int] = frozenset()  # that this process is bound to; none: all
    cores: float | None = None  # that queries may use; None: those of the session


@dataclass(frozen=True)
class Order:
    """What a supervisor, who knows the other workers as well, wants of a query."""

    accuracy: float  # part of what it is given that it is to keep
    least: float  # and that a burst must leave
    at_s: float


@dataclass
class Quality:
    """One query that may be shed."""

    name: str
    priority: float
    min_accuracy: float
    shedders: Shedders
    meter: QualityMeter
    desired: float = 1.0  # what the controller wants
    current: float | None = None  # what is processed of what comes and waits
    paused: bool = False  # stopped because its minimum does not fit
    applied: float = 1.0  # what its shedders aim at
    pace_s: float = 0.0  # least time between its micro-batches
    ordered: "Order | None" = None  # of a supervisor
    busy_before_s: float = 0.0

    @property
    def least(self) -> float:
        """Part of what it is given that must be left: of what others have shed before, more."""
        return self.min_accuracy if self.ordered is None else self.ordered.least


class QualityLoop:
    """A thread that turns measurements into shed rates.

    Parameters
    ----------
    cores
        For all queries together; None: they run elsewhere, and only a query's own time bounds it.
    on_pause, on_resume
        Called with the name of a query that must stop, or may run again.
    on_pace
        Called with the name of a query and the least time between its micro-batches.
    accuracy
        The definition of the current accuracy.
    clock
        Where time comes from.
    """

    def __init__(
        self,
        settings: QualitySettings,
        cores: float | None,
        on_pause: Callable[[str], None],
        on_resume: Callable[[str], None],
        on_pace: Callable[[str, float], None] = lambda name, pace_s: None,
        accuracy: Accuracy | None = None,
        clock: Clock = RealClock(),
    ) -> None:
        self.settings = settings
        self._clock = clock
        self.enabled = True
        self.decision: QualityDecision | None = None
        self._cores = cores
        self._on_pause = on_pause
        self._on_resume = on_resume
        self._on_pace = on_pace
        self._machine = MachineMeter(cpus=settings.cpus, clock=clock)
        self.used = 0.0  # cores of this application, smoothed
        self._controller = QualityController(
            accuracy or Lag(settings.drain_s),
            settings.headroom,
            WarmUps(limit_s=settings.warmup_s),
            settings.patience if settings.pauses else sys.maxsize,
        )
        self._lock = threading.Lock()
        self._queries: dict[str, Quality] = {}
        self.others = 0.0  # of our cores, those that other processes use, smoothed
        self._lately: tuple[float, ...] = (0.0, 0.0, 0.0)  # seconds, CPU, micro-batches; fading
        self._cores_per_batch = 1.0  # while a micro-batch runs; less when others are in its way
        self._most_per_batch = 1.0  # and the most that was seen lately
        self._closing = threading.Event()
        self._thread: threading.Thread | None = None

    def add(self, quality: Quality) -> None:
        """Shed this query from now on where there is too much."""
        with self._lock:
            self._queries[quality.name] = quality
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="slackwater-quality", daemon=True
                )
                self._thread.start()

    def get(self, name: str) -> Quality | None:
        return self._queries.get(name)

    def all(self) -> list[Quality]:
        with self._lock:
            return list(self._queries.values())

    def take(self, name: str, progress: dict[str, Any]) -> None:
        """Learn from one progress event of any query."""
        quality = self._queries.get(name)
        if quality is not None:
            with self._lock:
                quality.meter.take(progress, quality.shedders.count(progress))

    def remove(self, name: str) -> None:
        """Forget a query that has gone, or is nobody's to shed any more."""
        with self._lock:
            found = self._queries.pop(name, None)
        self._controller.forget(name)
        if found is not None:
            found.shedders.close()

    def resumed(self, name: str) -> None:
        """Note that somebody has started by hand a query that was stopped, for whatever reason."""
        found = self._queries.get(name)
        if found is not None:
            found.paused = False
            self._controller.forget(name)

    def order(self, name: str, accuracy: float, least: float) -> None:
        """Follow a supervisor on how much a query is to keep; it must say so again and again."""
        found = self._queries.get(name)
        if found is not None:
            accuracy, least = (min(max(part, 0.0), 1.0) for part in (accuracy, least))
            found.ordered = Order(accuracy, least, self._clock.now())

    def rate(self, name: str) -> float | None:
        """Return the rows per second that arrive for a query, as far as is known."""
        found = self._queries.get(name)
        return None if found is None else found.meter.rate

    def lag_s(self, name: str) -> float | None:
        """Return the seconds of input that waited when its last micro-batch ended."""
        found = self._queries.get(name)
        rate = None if found is None else found.meter.rate
        return None if found is None or not rate else max(0.0, found.meter.backlog) / rate

    def cost(self, name: str) -> dict[str, float] | None:
        """Return what a query costs: cores at accuracy 0, more at 1, at most; its accuracy now; and
        of how many micro-batches that is known."""
        found = self._queries.get(name)
        needs = found.meter.needs if found is not None else None
        if found is None or needs is None:
            return None
        each = self._cores_per_batch
        # Without what waits: the limit on micro-batches lets it go, and it is no reason to move.
        return {
            "fixed": each * needs.fixed,
            "slope": each * needs.rows,
            "most": self._most_per_batch,
            "current": 1.0 if found.current is None else found.current,
            "batches": found.meter.batches,
        }

    def close(self) -> None:
        """Shed nothing any more."""
        self._closing.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self._shed_nothing()
        for quality in self.all():
            quality.shedders.close()

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closing.wait(self.settings.period_s):
            try:
                if self.enabled:
                    self._cycle()
                else:
                    self._shed_nothing()
                    self._resume_all()
            except Exception:
                log.exception("no decision on quality; nothing is shed until there is one")
                self._shed_nothing()

    def _read_arrivals(self) -> None:
        for quality in self.all():
            arrivals = quality.shedders.arrivals()
            with self._lock:
                quality.meter.add_arrivals(arrivals)

    def _cycle(self) -> None:
        self._read_arrivals()
        known = [(quality, quality.meter.needs) for quality in self.all()]
        queries = [(quality, needs) for quality, needs in known if needs is not None]
        self._measure([quality for quality, _ in known])
        for quality, needs in known:
            if needs is None:  # nobody knows how long its micro-batches take
                quality.shedders.aim(1.0, FIRST_ROWS, quality.least)
        if not queries:
            return
        layout, load, cluster = self._model(queries)
        self.decision = self._controller.cycle(self._clock.now(), cluster, layout, load)
        self._enforce([quality for quality, _ in queries], self.decision)

    def _measure(self, queries: list[Quality]) -> None:
        """Measure CPU of this application by second of micro-batches, and of everybody else."""
        seconds, own, others = self._machine.look()
        busy_s = 0.0
        for quality in queries:
            busy_s += quality.meter.busy_s - quality.busy_before_s
            quality.busy_before_s = quality.meter.busy_s
        if seconds <= 0:
            return
        self.others += 0.3 * (self._taken(others) - self.others)
        self.used += 0.3 * (own - self.used)
        # A batch is told of when it ends, and may have taken longer than a cycle.
        looked = (seconds, own * seconds, busy_s)
        self._lately = tuple(
            LATELY * before + now for before, now in zip(self._lately, looked, strict=True)
        )
        seconds, cpu_s, busy_s = self._lately
        if busy_s > 0.2 * seconds:
            self._cores_per_batch = cpu_s / busy_s
            self._most_per_batch = max(1.0, self._cores_per_batch, 0.99 * self._most_per_batch)

    def _taken(self, others: float) -> float:
        """Return what others use of our cores; they use first those that are not ours."""
        if self._cores is None or not self.settings.counts_others:
            return 0.0
        return max(0.0, others - max(0.0, self._machine.cores - self._cores))

    def _model(self, queries: list[tuple[Quality, Needs]]) -> tuple[Layout, Load, Cluster]:
        graph = Graph([Task(q.name, (), q.priority, q.min_accuracy) for q, _ in queries])
        places = np.arange(len(queries))
        zeros = np.zeros(len(queries), dtype=np.intp)
        layout = Layout(graph, places, zeros, zeros)
        each = self._cores_per_batch
        fixed = np.array([each * needs.fixed for _, needs in queries])
        offered = np.array([needs.rate for _, needs in queries])
        waiting = np.array([needs.backlog for _, needs in queries])
        seen = (1.0 if q.meter.delivered is None else q.meter.delivered for q, _ in queries)
        delivered = np.maximum(np.array(list(seen)), 0.01)
        processed = delivered * (offered + waiting / self.settings.drain_s)
        per_row = np.array([needs.rows / max(needs.rate, 1e-9) for _, needs in queries])
        load = Load(
            in_rate=processed,
            cpu=fixed + each * per_row * processed,
            source_rate=offered,
            out_rate=np.zeros(0),
            fixed=fixed,
            # Not by the time that it takes now: with less beside it, it takes less.
            most=np.full(len(queries), self._most_per_batch * (1 - self.settings.headroom)),
            backlog=waiting,
        )
        cores = self._cores if self._cores is not None else 1e6
        return layout, load, Cluster((WORKER,), np.array([cores]), np.array([self.others]))

    def _enforce(self, queries: list[Quality], decision: QualityDecision) -> None:
        for place, quality in enumerate(queries):
            quality.desired = float(decision.desired[place])
            quality.current = float(decision.current[place])
            least, order = quality.least, quality.ordered
            if order is not None:
                fresh = self._clock.now() < order.at_s + ORDER_LASTS_S
                quality.desired = order.accuracy if fresh else max(quality.desired, least)
            rise = min(quality.desired, quality.applied + SLOWLY)
            quality.applied = max(rise, least)
            rows = quality.meter.rows_in(self.settings.batch_every_s * LONGEST)
            quality.shedders.aim(quality.applied, rows, least)
        self._pace(queries, decision)
        for name in decision.stop:
            log.error("%s stops: there is no CPU for its minimum accuracy", name)
            self._queries[name].paused = True
            self._on_pause(name)
        for name in decision.resume:
            log.warning("%s goes on: there is CPU for its minimum accuracy again", name)
            self._resume(name)

    def _resume(self, name: str) -> None:
        self._queries[name].paused = False
        self._on_resume(name)

    def _resume_all(self) -> None:
        """Resume who was stopped for want of CPU while nobody looks after it."""
        for quality in self.all():
            if quality.paused:
                self._controller.forget(quality.name)
                self._resume(quality.name)

    def _pace(self, queries: list[Quality], decision: QualityDecision) -> None:
        """Let batches be fewer where CPU is scarce: it saves what they cost besides their rows."""
        scarce = bool(decision.left[0] < SCARCE * (self._cores or 0.0) or decision.short)
        scarce = scarce or bool((decision.desired < 1.0).any())
        for quality in queries:
            self._set_pace(quality, self.settings.batch_every_s if scarce else 0.0)

    def _set_pace(self, quality: Quality, pace_s: float) -> None:
        if pace_s != quality.pace_s:
            quality.pace_s = pace_s
            self._on_pace(quality.name, pace_s)

    def _shed_nothing(self) -> None:
        for quality in self.all():
            self._set_pace(quality, 0.0)
            quality.desired = quality.applied = 1.0
            quality.shedders.put(NO_SHEDDING)
