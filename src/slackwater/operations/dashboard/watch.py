"""Looks at running fleets, as often as somebody wants to know."""

import logging
import threading
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import asdict, replace

from slackwater.core.clock import Deadline, RealClock, Timer
from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.control.recent import Recent
from slackwater.ipc.client import ask
from slackwater.ipc.framing import to_json
from slackwater.ipc.messages import copy_fields
from slackwater.ipc.questions import (
    AskStatus,
    AskWatch,
    BatchEvent,
    Control,
    Controlled,
    DecisionEvent,
    Failure,
    Watched,
)
from slackwater.operations.dashboard.latencies import Histogram
from slackwater.operations.dashboard.status import (
    FleetStatus,
    QueryStatus,
    SilentFleet,
    Status,
    fleet_status,
    query_statuses,
)

log = logging.getLogger("slackwater.operations.dashboard")

PERIOD_S = 0.5
INTEREST_S = 3.0  # so long after a question somebody may ask again
PATIENCE_S = 1.0  # for a controller's answer
FORGET_S = 60.0  # that a silent fleet is still shown
LATENCIES = 40  # of a query that are kept for its curve
NAMES_KEPT = 6  # of those who waited beside a decision; the rest is counted

Paths = Callable[[], list[Path]]


class BatchEntry(BatchEvent, frozen=True):
    """A batch, on the page."""

    fleet: str


class DecisionEntry(DecisionEvent, frozen=True):
    """A decision, on the page; of those who waited beside it only the first are named."""

    fleet: str
    others: int  # that are not named


class Picture(NamedTuple):
    """What was seen at a moment."""

    number: int
    status: Status
    text: str  # the same as JSON, made once for all who look


class Fleet:
    """One controller, and how far its log is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem
        self.answer: Watched | None = None  # the last one
        self.error: str | None = None  # why there is no newer one
        self._epoch: float | None = None  # of the controller that the numbers are of
        self._decided = self._happened = 0
        self._heard = Timer()

    @property
    def forgotten(self) -> bool:
        """Gone for good, as far as one can tell: a controller comes back sooner."""
        return self._heard.elapsed_s > FORGET_S

    def ask(self) -> Watched | None:
        """Return the news; None while nobody answers."""
        try:
            known = AskWatch(decided=self._decided, happened=self._happened)
            answer = ask(self.path, known, Watched, PATIENCE_S)
            if self._epoch not in (None, answer.epoch):  # another: it tells from the start
                answer = ask(self.path, AskWatch(), Watched, PATIENCE_S)
        except SlackwaterError as error:
            self.error = str(error)
            return None
        self._epoch, self.error = answer.epoch, None
        self._decided, self._happened = answer.decided, answer.happened
        self.answer = answer
        self._heard.restart()
        return self.answer


class Watch:
    """A thread that looks while somebody is interested.

    Parameters
    ----------
    fleets
        Says where the sockets of controllers are; asked before each look.
    middlewares
        The same of middlewares.
    expected
        Whether fleets that have never answered are shown: they will.
    """

    def __init__(self, fleets: Paths, middlewares: Paths = list, *, expected: bool = False) -> None:
        self.log = Recent[BatchEntry | DecisionEntry]()  # decisions and batches of all fleets
        self.latencies: dict[tuple[str, str], Histogram] = {}  # by application and query
        self._clock = RealClock()
        self._paths, self._middlewares = fleets, middlewares
        self._expected = expected
        self._fleets: dict[str, Fleet] = {}
        self._places: dict[tuple[str, str], int] = {}  # in the order in which they were first seen
        self._recent: dict[tuple[str, str], deque[float]] = {}  # latencies, by fleet and query
        self._picture = Picture(0, Status(0.0), "")
        self._changed = threading.Condition()
        self._wanted = threading.Event()
        self._interest = Deadline(0.0)
        self._closed = False
        threading.Thread(target=self._run, name="slackwater-watch", daemon=True).start()

    def close(self) -> None:
        self._closed = True
        self._wanted.set()
        with self._changed:
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        return self._closed

    def now(self) -> Picture:
        """Return a picture that is not older than a period or two."""
        seen = self._picture
        fresh = self._clock.now() - seen.status.at_s < 2 * PERIOD_S
        self._want()
        return seen if fresh else self.after(seen.number, PATIENCE_S + PERIOD_S) or self._picture

    def after(self, number: int, patience_s: float) -> Picture | None:
        """Return the first picture after that one; None if there is none for so long."""
        self._want()
        with self._changed:
            self._changed.wait_for(
                lambda: self._picture.number > number or self._closed, patience_s
            )
        return self._picture if self._picture.number > number else None

    def control(self, fleet: str, command: Control) -> Controlled | Failure:
        """Tell a controller something."""
        if fleet not in self._fleets:
            return Failure(f"no fleet named {fleet!r} is watched")
        try:
            return ask(self._fleets[fleet].path, command, Controlled)
        except SlackwaterError as error:
            return Failure(str(error))

    # -- the thread -----------------------------------------------------------------------------

    def _want(self) -> None:
        self._interest = Deadline(INTEREST_S)
        self._wanted.set()

    def _run(self) -> None:
        while not self._closed:
            period = Deadline(PERIOD_S)
            if self._interest.passed:
                self._wanted.clear()
                self._wanted.wait()
            try:
                self._look()
            except Exception:
                log.exception("a look at the fleets failed; going on")
            self._clock.sleep(period.left_s)

    def _look(self) -> None:
        self._fleets = {name: fleet for name, fleet in self._fleets.items() if not fleet.forgotten}
        for path in self._paths():
            self._fleets.setdefault(path.stem, Fleet(path))
        fleets: list[FleetStatus | SilentFleet] = []
        queries: list[QueryStatus] = []
        for fleet in self._fleets.values():
            news = fleet.ask()
            if news is not None:
                self._take(fleet.name, news)
            if fleet.answer is None:
                if self._expected:
                    fleets.append(SilentFleet(fleet.name, fleet.error))
                continue
            status = fleet_status(fleet.name, fleet.answer)
            rows = query_statuses(fleet.name, fleet.answer)
            if news is None:  # the last that is known, and that it is not news
                status = replace(status, state="silent", error=fleet.error)
                rows = [replace(row, state="unknown") for row in rows]
            fleets.append(status)
            queries += [replace(row, latencies_s=self._curve(fleet.name, row.name)) for row in rows]
        for row in queries:
            self._places.setdefault((row.fleet, row.name), len(self._places))
        queries.sort(key=lambda row: self._places[row.fleet, row.name])
        middlewares = tuple(_middleware(path) for path in self._middlewares())
        seen = Status(self._clock.now(), tuple(fleets), tuple(queries), middlewares)
        with self._changed:
            self._picture = Picture(self._picture.number + 1, seen, to_json(seen).decode())
            self._changed.notify_all()

    def _take(self, fleet: str, news: Watched) -> None:
        app = news.app_name or fleet
        for event in news.events:
            if isinstance(event, BatchEvent):
                self.log.add(BatchEntry(**asdict(event), fleet=fleet))
                continue
            query, latency_s = event.query, event.latency_s
            self._recent.setdefault((fleet, query), deque(maxlen=LATENCIES)).append(latency_s)
            self.latencies.setdefault((app, query), Histogram()).add(latency_s)
        for decision in news.decisions:
            named = copy_fields(decision, DecisionEvent)
            named = replace(named, waiting=decision.waiting[:NAMES_KEPT])
            others = len(decision.waiting) - len(named.waiting)
            self.log.add(DecisionEntry(**asdict(named), fleet=fleet, others=others))

    def _curve(self, fleet: str, query: str) -> tuple[float, ...]:
        return tuple(round(latency_s, 3) for latency_s in self._recent.get((fleet, query), ()))


def _middleware(path: Path) -> dict[str, Any]:
    try:
        return {"name": path.stem, **ask(path, AskStatus(), dict[str, Any], PATIENCE_S)}
    except SlackwaterError as error:
        return {"name": path.stem, "error": str(error)}
