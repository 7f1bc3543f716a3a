"""Looks at running fleets, as often as somebody wants to know."""

import json
import logging
import math
import threading
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.control.recent import Recent
from slackwater.ipc import wire
from slackwater.operations.dashboard.latencies import Histogram
from slackwater.operations.dashboard.status import fleet_status, query_statuses

log = logging.getLogger("slackwater.operations.dashboard")

PERIOD_S = 0.5
INTEREST_S = 3.0  # so long after a question somebody may ask again
PATIENCE_S = 1.0  # for a controller's answer
FORGET_S = 60.0  # that a silent fleet is still shown
LATENCIES = 40  # of a query that are kept for its curve
NAMES_KEPT = 6  # of those who waited beside a decision; the rest is counted

Paths = Callable[[], list[Path]]


class Picture(NamedTuple):
    """What was seen at a moment."""

    number: int
    status: dict[str, Any]
    text: str  # the same as JSON, made once for all who look


class Fleet:
    """One controller, and how far its story is known."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.name = path.stem
        self.answer: wire.Message | None = None  # the last one
        self.error: str | None = None  # why there is no newer one
        self._epoch: float | None = None  # of the controller that the numbers are of
        self._decided = self._happened = 0
        self._heard_s = time.monotonic()

    @property
    def forgotten(self) -> bool:
        """Gone for good, as far as one can tell: a controller comes back sooner."""
        return time.monotonic() > self._heard_s + FORGET_S

    def ask(self) -> wire.Message | None:
        """The news; None while nobody answers."""
        try:
            known = {"decided": self._decided, "happened": self._happened}
            answer = wire.ask(self.path, "watch", PATIENCE_S, **known)
            if self._epoch not in (None, answer["epoch"]):  # another: it tells from the start
                answer = wire.ask(self.path, "watch", PATIENCE_S)
        except (SlackwaterError, KeyError, TypeError) as error:
            self.error = str(error)
            return None
        self._epoch, self.error = answer["epoch"], None
        self._decided, self._happened = answer["decided"], answer["happened"]
        self.answer, self._heard_s = answer, time.monotonic()
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
        self.log = Recent()  # decisions and batches of all fleets
        self.latencies: dict[tuple[str, str], Histogram] = {}  # by application and query
        self._paths, self._middlewares = fleets, middlewares
        self._expected = expected
        self._fleets: dict[str, Fleet] = {}
        self._places: dict[tuple[str, str], int] = {}  # in the order in which they were first seen
        self._recent: dict[tuple[str, str], deque[float]] = {}  # latencies, by fleet and query
        self._picture = Picture(
            0, {"at_s": 0.0, "fleets": [], "queries": [], "middlewares": []}, ""
        )
        self._changed = threading.Condition()
        self._wanted = threading.Event()
        self._wanted_until_s = 0.0
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
        """One that is not older than a period or two."""
        seen = self._picture
        fresh = time.time() - seen.status["at_s"] < 2 * PERIOD_S
        self._want()
        return seen if fresh else self.after(seen.number, PATIENCE_S + PERIOD_S) or self._picture

    def after(self, number: int, patience_s: float) -> Picture | None:
        """The first picture after that one; None if there is none for so long."""
        self._want()
        with self._changed:
            self._changed.wait_for(
                lambda: self._picture.number > number or self._closed, patience_s
            )
        return self._picture if self._picture.number > number else None

    def control(self, fleet: str, action: str, **details: Any) -> Any:
        """Tell a controller something."""
        if fleet not in self._fleets:
            return {"error": f"no fleet named {fleet!r} is watched"}
        try:
            return wire.ask(self._fleets[fleet].path, "control", action=action, **details)
        except SlackwaterError as error:
            return {"error": str(error)}

    # -- the thread -----------------------------------------------------------------------------

    def _want(self) -> None:
        self._wanted_until_s = time.monotonic() + INTEREST_S
        self._wanted.set()

    def _run(self) -> None:
        while not self._closed:
            began_s = time.monotonic()
            if began_s > self._wanted_until_s:
                self._wanted.clear()
                self._wanted.wait()
            try:
                self._look()
            except Exception:
                log.exception("a look at the fleets failed; going on")
            time.sleep(max(0.0, began_s + PERIOD_S - time.monotonic()))

    def _look(self) -> None:
        self._fleets = {name: fleet for name, fleet in self._fleets.items() if not fleet.forgotten}
        for path in self._paths():
            self._fleets.setdefault(path.stem, Fleet(path))
        fleets: list[dict[str, Any]] = []
        queries: list[dict[str, Any]] = []
        for fleet in self._fleets.values():
            news = fleet.ask()
            if news is not None:
                self._take(fleet.name, news)
            if fleet.answer is None:
                if self._expected:
                    fleets.append({"name": fleet.name, "state": "silent", "error": fleet.error})
                continue
            status = fleet_status(fleet.name, fleet.answer)
            rows = query_statuses(fleet.name, fleet.answer)
            if news is None:  # the last that is known, and that it is not news
                status |= {"state": "silent", "error": fleet.error}
                rows = [row | {"state": "unknown"} for row in rows]
            fleets.append(status)
            queries += [row | {"latencies_s": self._curve(fleet.name, row["name"])} for row in rows]
        for row in queries:
            self._places.setdefault((row["fleet"], row["name"]), len(self._places))
        queries.sort(key=lambda row: self._places[row["fleet"], row["name"]])
        status = {
            "at_s": time.time(),
            "fleets": fleets,
            "queries": queries,
            "middlewares": [_middleware(path) for path in self._middlewares()],
        }
        with self._changed:
            self._picture = Picture(self._picture.number + 1, status, to_json(status))
            self._changed.notify_all()

    def _take(self, fleet: str, news: wire.Message) -> None:
        app = news.get("app_name") or fleet
        for event in news["events"]:
            if event["kind"] == "batch":
                self.log.add("batch", fleet=fleet, **_without(event, "kind"))
                continue
            query, latency_s = event["query"], event["latency_s"]
            self._recent.setdefault((fleet, query), deque(maxlen=LATENCIES)).append(latency_s)
            self.latencies.setdefault((app, query), Histogram()).add(latency_s)
        for decision in news["decisions"]:
            waiting = decision["waiting"]
            short = {"waiting": waiting[:NAMES_KEPT], "others": max(0, len(waiting) - NAMES_KEPT)}
            self.log.add("decision", fleet=fleet, **(decision | short))

    def _curve(self, fleet: str, query: str) -> list[float]:
        return [round(latency_s, 3) for latency_s in self._recent.get((fleet, query), ())]


def to_json(value: Any) -> str:
    """As browsers read it: they know no infinity, which is "not known" here.

    >>> to_json({"slack_s": float("inf"), "rows": [1.5]})
    '{"slack_s":null,"rows":[1.5]}'
    """
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _without(entry: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name != key}


def _middleware(path: Path) -> dict[str, Any]:
    try:
        return {"name": path.stem, **wire.ask(path, "status", PATIENCE_S)}
    except SlackwaterError as error:
        return {"name": path.stem, "error": str(error)}
