"""Which query is on which worker, and what has to be done about it. No sockets, no Spark."""

import logging
from collections import deque
from random import Random
from typing import NamedTuple

import numpy as np

from slackwater.operations.workers.messages import QueryCost, WorkerReport
from slackwater.operations.workers.model import (
    Directive,
    Model,
    Placed,
    Wanted,
    WorkerView,
    reported,
)
from slackwater.quality import QualityController, place
from slackwater.quality.cost import UNKNOWN_CPU

__all__ = ["ANSWER_S", "Directive", "Placed", "Placement", "Wanted"]

log = logging.getLogger("slackwater.operations.workers")

WARM = 10  # micro-batches with rows, before which a query costs more than it will
SETTLE_S = 60.0  # that nothing moves or stops at most because of a query that is not warm
MOST_EVENTS = 1000  # that are remembered
ANSWER_S = 20.0  # a directive that shows no effect for so long is given again


class PlacementEvent(NamedTuple):
    """A move or a stop, and what was lacking."""

    at_s: float
    what: str  # moves or stops
    query: str
    worker: str | None
    lacked: float | None  # cores


class Placement:
    """Keeps the fleet's queries running somewhere.

    Parameters
    ----------
    wanted
        The queries.
    controller
        Says what moves and what stops.
    most_failures
        In a row, after which a query is given up.
    """

    def __init__(
        self,
        wanted: list[Wanted],
        controller: QualityController,
        chance: Random | None = None,
        most_failures: int = 5,
    ) -> None:
        self.queries = {each.name: Placed(each) for each in wanted}
        self.workers: dict[str, WorkerView] = {}
        self._controller = controller
        self._chance = chance or Random()
        self._most_failures = most_failures
        self.events: deque[PlacementEvent] = deque(maxlen=MOST_EVENTS)

    def want(self, wanted: list[Wanted], now_s: float) -> list[Directive]:
        """Take a changed fleet file.

        Queries that are new are placed, others stop, and one that should be elsewhere now moves, if
        it fits there.
        """
        named = {each.name: each for each in wanted}
        found = []
        for name, placed in list(self.queries.items()):
            if name in named:
                before, placed.wanted = placed.wanted, named[name]
                if before.prefers != placed.wanted.prefers:
                    found += self._follow(placed, now_s)
            elif placed.worker is None:
                del self.queries[name]
            else:
                del self.queries[name]
                found.append(Directive(placed.worker, "stop", name))
        for name, each in named.items():
            self.queries.setdefault(name, Placed(each))
        return found

    # -- what happens ---------------------------------------------------------------------------

    def joined(self, worker: str, cores: float) -> None:
        """Note that a worker is there, perhaps again."""
        self.workers[worker] = WorkerView(worker, cores)

    def reported(self, worker: str, report: WorkerReport, now_s: float) -> list[Directive]:
        """Take what a worker runs now; a query that runs where it should not is stopped there."""
        view = self.workers.get(worker)
        if view is None:
            return []
        view.report = report
        found = []
        for name in view.queries:
            placed = self.queries.get(name)
            if placed is None or not self._believe(placed, view, now_s):
                found.append(Directive(worker, "stop", name))
        return found

    def ended(
        self, worker: str, query: str, error: str | None, now_s: float, ordered: bool = False
    ) -> None:
        """Note that a query that a worker was told to start or stop runs there no more.

        Parameters
        ----------
        ordered
            Whether it was told to stop, and did not come to its end by itself.
        """
        placed = self.queries.get(query)
        if placed is None or placed.worker != worker:
            return
        if placed.phase == "moving":
            placed.phase, placed.worker = "unplaced", None
        elif placed.phase == "stopping":
            placed.phase, placed.worker = "stopped", None
        elif error is None and ordered:  # taken from the file, and added again since
            placed.phase, placed.worker = "unplaced", None
        elif error is None:
            placed.phase, placed.worker = "stopped", None  # it has come to its end
        else:
            placed.failures += 1
            placed.error = error
            given_up = placed.failures >= self._most_failures
            placed.phase = "failed" if given_up else "unplaced"
            placed.worker = None
            placed.told_s = now_s

    def lost(self, worker: str) -> None:
        """Place again what a worker ran that is dead for certain."""
        self.workers.pop(worker, None)
        for placed in self.queries.values():
            if placed.worker == worker:
                log.warning(
                    "%s was on %s, which died; it is placed again", placed.wanted.name, worker
                )
                stopping = placed.phase == "stopping"
                placed.phase, placed.worker = ("stopped" if stopping else "unplaced"), None

    # -- what is to be done ---------------------------------------------------------------------

    def place_all(self, now_s: float) -> list[Directive]:
        """Start what runs nowhere, the important first; say again what was not heard."""
        found = []
        waiting = [each for each in self.queries.values() if each.phase == "unplaced"]
        for placed in sorted(waiting, key=lambda each: -each.wanted.priority):
            if placed.failures and now_s < placed.told_s + min(2.0**placed.failures, 30.0):
                continue
            worker = placed.target if placed.target in self.workers else self._choose(placed)
            if worker is None:
                break
            placed.phase, placed.worker, placed.target = "starting", worker, None
            placed.told_s = now_s
            found.append(Directive(worker, "start", placed.wanted.name))
        return found + self._again(now_s)

    def control(self, now_s: float) -> list[Directive]:
        """Run one cycle of the quality controller over all workers."""
        running = [each for each in self.queries.values() if each.phase == "running"]
        shed = [each for each in running if each.wanted.min_accuracy is not None]
        known = [each for each in shed if self._measured(each) is not None]
        for each in known:
            each.home, each.cost = each.worker, self._measured(each)
        waiting = self._waiting()
        known += waiting
        if not known or any(view.report is None for view in self.workers.values()):
            return []
        model = Model(known, self.queries.values(), self.workers)
        settled = not any(self._settles(each, now_s) for each in self.queries.values())
        decision = self._controller.cycle(now_s, model.cluster, model.layout, model.load, settled)
        found = model.aims(decision.keep)
        for move in decision.moves:
            placed = model.query(*move.instance)
            self._note("moves", placed, now_s, decision.lacked.get(move.origin))
            found.append(self._move(placed, move.target, now_s))
        for placed in (each for task in decision.stop for each in model.instances(task)):
            if placed.phase == "running":
                found.append(self._stop(placed, now_s, decision.lacked.get(placed.worker or "")))
        for placed in waiting:
            if placed.wanted.of_task in decision.resume:
                placed.phase, placed.error, placed.target = "unplaced", None, placed.home
        return found

    def warming(self, now_s: float) -> set[str]:
        """Return the workers on which a query warms up."""
        keys = self._controller.warmups.warming(now_s)
        found = set()
        for name, number in keys:
            mates = [each for each in self.queries.values() if each.wanted.of_task == name]
            if number < len(mates) and mates[number].worker is not None:
                found.add(str(mates[number].worker))
        return found

    def _note(self, what: str, placed: Placed, now_s: float, lacked: float | None) -> None:
        at_s = round(now_s, 2)
        self.events.append(PlacementEvent(at_s, what, placed.wanted.name, placed.worker, lacked))

    def _settles(self, placed: Placed, now_s: float) -> bool:
        """Tell whether it is on the way, or has not run long enough to say what it costs."""
        if placed.wanted.min_accuracy is None or placed.phase in ("stopped", "failed"):
            return False
        if placed.phase != "running":
            return True
        cost = self._measured(placed)
        if cost is None or placed.measured_s is None:
            return now_s < placed.since_s + SETTLE_S  # it may never have a row
        few = cost.batches is not None and cost.batches < WARM
        return few and now_s < placed.measured_s + SETTLE_S

    def _waiting(self) -> list[Placed]:
        """Return queries stopped for want of CPU, each with the worker that it would go to."""
        found = [
            each
            for each in self.queries.values()
            if each.phase == "stopped" and each.error and each.cost is not None and self.workers
        ]
        free = {name: self._free(view) for name, view in self.workers.items()}
        for each in sorted(found, key=lambda each: -each.wanted.priority):
            assert each.cost is not None
            each.home = max(free, key=lambda name: free[name])
            free[each.home] -= each.cost.full * (each.wanted.min_accuracy or 0.0)
        return found

    # -- steps ----------------------------------------------------------------------------------

    def _believe(self, placed: Placed, view: WorkerView, now_s: float) -> bool:
        """Tell whether a query may run where a worker says that it does."""
        worker = view.name
        if placed.phase in ("unplaced", "failed"):  # adopted: we were not there when it was placed
            placed.phase, placed.worker, placed.told_s = "running", worker, now_s
            placed.since_s, placed.measured_s = now_s, None
        elif placed.worker != worker or placed.phase == "stopped":
            return False
        elif placed.phase == "starting":
            placed.phase, placed.since_s, placed.measured_s = "running", now_s, None
            mates = [
                n for n, p in self.queries.items() if p.wanted.of_task == placed.wanted.of_task
            ]
            number = mates.index(placed.wanted.name)
            self._controller.warmups.begin((placed.wanted.of_task, number), now_s)
        # A worker says that a query is there before it has run a micro-batch, and when it has.
        if placed.phase == "running" and view.queries[placed.wanted.name].cost is not None:
            placed.failures, placed.error = 0, None
            placed.measured_s = now_s if placed.measured_s is None else placed.measured_s
        return True

    def _follow(self, placed: Placed, now_s: float) -> list[Directive]:
        """Move a query to where its user wants it now."""
        prefers = placed.wanted.prefers
        if placed.phase != "running" or not prefers or placed.worker in prefers:
            return []
        cost = self._measured(placed)
        needed = UNKNOWN_CPU if cost is None else cost.needed
        names = [name for name in prefers if name in self.workers]
        free = {name: self._free(self.workers[name]) for name in names}
        target = max(names, key=lambda name: free[name], default=None)
        if target is None or free[target] < needed:
            return []
        return [self._move(placed, target, now_s)]

    def _move(self, placed: Placed, target: str, now_s: float) -> Directive:
        """Move a query: it starts there when it is known to have stopped here."""
        assert placed.worker is not None
        log.warning("%s moves from %s to %s", placed.wanted.name, placed.worker, target)
        placed.phase, placed.target, placed.told_s = "moving", target, now_s
        placed.moves += 1
        return Directive(placed.worker, "stop", placed.wanted.name)

    def _stop(self, placed: Placed, now_s: float, lacked: float | None) -> Directive:
        """Stop a query for want of CPU; it comes back when there is some."""
        assert placed.worker is not None
        log.error("%s stops: no worker has the CPU for its minimum", placed.wanted.name)
        self._note("stops", placed, now_s, lacked)
        placed.phase, placed.told_s = "stopping", now_s
        placed.error = "no worker has the CPU for its minimum accuracy"
        return Directive(placed.worker, "stop", placed.wanted.name)

    def _again(self, now_s: float) -> list[Directive]:
        found = []
        for placed in self.queries.values():
            overdue = now_s >= placed.told_s + ANSWER_S
            if placed.worker is None or placed.worker not in self.workers:
                continue
            there = placed.wanted.name in self.workers[placed.worker].queries
            if placed.phase in ("starting", "running") and not there and overdue:
                found.append(Directive(placed.worker, "start", placed.wanted.name))
            elif placed.phase in ("moving", "stopping") and overdue:
                found.append(Directive(placed.worker, "stop", placed.wanted.name))
            else:
                continue
            placed.told_s = now_s
        return found

    def _choose(self, placed: Placed) -> str | None:
        names = list(self.workers)
        if not names:
            return None
        free = np.array([self._free(self.workers[name]) for name in names])
        preferred = [names.index(each) for each in placed.wanted.prefers if each in names]
        chosen = place(free, self._chance, needed=UNKNOWN_CPU, preferred=preferred)
        return None if chosen is None else names[chosen]

    def _free(self, view: WorkerView) -> float:
        """Return cores that nobody uses; queries that are not measured yet count as one each."""
        mine = [each for each in self.queries.values() if each.worker == view.name]
        unknown = [each for each in mine if self._measured(each) is None]
        used = 0.0 if view.report is None else view.report.used + view.report.others
        return view.cores - used - UNKNOWN_CPU * len(unknown)

    def _measured(self, placed: Placed) -> QueryCost | None:
        return reported(placed, self.workers).cost
