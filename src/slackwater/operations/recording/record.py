"""Keeps the decisions and metrics of a running fleet as lines of JSON."""

import os
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

from msgspec import Struct

from slackwater.core.clock import Deadline, RealClock
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.ipc.client import ask
from slackwater.ipc.framing import encode
from slackwater.ipc.messages import copy_fields
from slackwater.ipc.questions import (
    AskStatus,
    BatchEvent,
    DecisionEvent,
    Event,
    QueryEntry,
    Status,
    Watched,
)
from slackwater.operations.dashboard.watch import Fleet

PERIOD_S = 0.5
STATUS_EVERY_S = 5.0  # between two lines with all that is known of the queries

Say = Callable[[str], None]


class RecordedStatus(Struct, frozen=True, tag_field="kind", tag="status"):
    """All that was known of a fleet at a moment."""

    at_s: float
    app_name: str | None
    policy: str
    slots: int
    open: bool
    cpu_s: float
    cores: int | None
    queries: tuple[QueryEntry, ...]


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
        file = path.open("xb")
    except FileExistsError:
        raise UsageError(f"{path} is there already; name another file") from None
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    from_s = first.now_s
    clock = RealClock()
    end, next_status = Deadline(seconds, clock), Deadline(0.0, clock)
    with file:
        while not fleet.forgotten:
            if next_status.passed:
                counted.update(_write(file, _status(fleet)))
                next_status = Deadline(STATUS_EVERY_S, clock)
            if stop() or end.passed:
                break
            clock.sleep(PERIOD_S)
            news = fleet.ask()
            if news is not None:
                counted.update(_write(file, _happened(news, from_s)))
                say(", ".join(f"{number} {kind}" for kind, number in sorted(counted.items())))
        counted.update(_write(file, _status(fleet)))  # costs are known best at the end
    return counted


def _status(fleet: Fleet) -> list[RecordedStatus]:
    """Return all that is known of the queries, and what the last news said of their fleet."""
    news = fleet.answer
    assert news is not None, "a fleet that never answered is not recorded"
    try:
        status = ask(fleet.path, AskStatus(), Status)
    except SlackwaterError:
        return []
    return [
        RecordedStatus(
            at_s=status.now_s,
            app_name=news.app_name,
            policy=news.policy,
            slots=news.slots,
            open=news.open,
            cpu_s=news.cpu_s,
            cores=os.cpu_count(),
            queries=status.queries,
        )
    ]


def _happened(news: Watched, from_s: float) -> list[DecisionEvent | Event]:
    """Return what happened in that order; nothing from before the recording."""
    decisions = (copy_fields(decision, DecisionEvent) for decision in news.decisions)
    found: list[DecisionEvent | Event] = [*decisions, *news.events]
    return sorted((entry for entry in found if _at_s(entry) >= from_s), key=_at_s)


def _at_s(entry: DecisionEvent | Event) -> float:
    if isinstance(entry, DecisionEvent):
        return entry.at_s
    return entry.end_s if isinstance(entry, BatchEvent) else entry.end_s + entry.latency_s


def _write(file: BinaryIO, entries: Sequence[RecordedStatus | DecisionEvent | Event]) -> list[str]:
    """Write lines; return their kinds."""
    for entry in entries:
        file.write(encode(entry))
    file.flush()
    return [str(entry.__struct_config__.tag) for entry in entries]
