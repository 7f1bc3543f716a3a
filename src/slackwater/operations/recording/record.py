"""Keeps the decisions and metrics of a running fleet as lines of JSON."""

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.ipc import wire
from slackwater.operations.dashboard.watch import Fleet

PERIOD_S = 0.5
STATUS_EVERY_S = 5.0  # between two lines with all that is known of the queries

Say = Callable[[str], None]


def record(
    socket: Path, path: Path, stop: Callable[[], bool], say: Say, seconds: float | None = None
) -> Counter[str]:
    """Write until ``stop()``, for ``seconds``, or until the fleet has gone; lines by kind.

    A controller that is started anew in between goes on being recorded.
    """
    fleet, counted = Fleet(socket), Counter[str]()
    first = fleet.ask()
    if first is None:
        raise UsageError(f"no fleet answers: {fleet.error}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("x")
    except FileExistsError:
        raise UsageError(f"{path} is there already; name another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    from_s = first["now_s"]
    until_s = time.monotonic() + (seconds if seconds is not None else float("inf"))
    next_status_s = 0.0
    with file:
        while not fleet.forgotten:
            if time.monotonic() >= next_status_s:
                counted.update(_write(file, _status(fleet)))
                next_status_s = time.monotonic() + STATUS_EVERY_S
            if stop() or time.monotonic() >= until_s:
                break
            time.sleep(PERIOD_S)
            news = fleet.ask()
            if news is not None:
                counted.update(_write(file, _happened(news, from_s)))
                say(", ".join(f"{number} {kind}" for kind, number in sorted(counted.items())))
        counted.update(_write(file, _status(fleet)))  # costs are known best at the end
    return counted


def _status(fleet: Fleet) -> list[dict[str, Any]]:
    """All that is known of the queries, and what the last news said of their fleet."""
    assert fleet.answer is not None, "a fleet that never answered is not recorded"
    try:
        status = wire.ask(fleet.path, "status")
    except SlackwaterError:
        return []
    kept = {key: fleet.answer.get(key) for key in ("app_name", "policy", "slots", "open", "cpu_s")}
    return [
        {
            "kind": "status",
            "at_s": status["now_s"],
            **kept,
            "cores": os.cpu_count(),
            "queries": status["queries"],
        }
    ]


def _happened(news: wire.Message, from_s: float) -> list[dict[str, Any]]:
    """In the order in which it happened; nothing from before the recording."""
    found = [{"kind": "decision", **decision} for decision in news["decisions"]] + news["events"]
    times = {id(entry): _at_s(entry) for entry in found}
    fresh = [entry for entry in found if times[id(entry)] >= from_s]
    return sorted(fresh, key=lambda entry: times[id(entry)])


def _at_s(entry: dict[str, Any]) -> float:
    match entry["kind"]:
        case "decision":
            return float(entry["at_s"])
        case "batch":
            return float(entry["end_s"])
        case _:
            return float(entry["end_s"]) + float(entry["latency_s"])


def _write(file: TextIO, entries: list[dict[str, Any]]) -> list[str]:
    for entry in entries:
        file.write(json.dumps(entry, separators=(",", ":")) + "\n")
    file.flush()
    return [entry["kind"] for entry in entries]
