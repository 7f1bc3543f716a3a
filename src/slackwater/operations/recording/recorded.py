"""A recording as it is read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from msgspec import Struct

from slackwater.core.errors import UsageError
from slackwater.core.model import QuerySpec
from slackwater.engines.simulator.query import BatchCosts
from slackwater.ipc.messages import SpecFields
from slackwater.ipc.questions import DecisionEvent, ResultEvent
from slackwater.statistics.batch_cost import BatchCost

WAITING = 0.2  # part of a batch that is waiting for disks and the slowest task, not work
LEAST_BATCHES = 3  # to tell what a row costs
ALIKE = 1e-9  # sizes that vary less are the same but for rounding


class QueryLine(Struct, frozen=True):
    """What is read of a query's status."""

    spec: SpecFields


class StatusLine(Struct, frozen=True, tag_field="kind", tag="status"):
    """What is read of a fleet's status."""

    at_s: float
    policy: str
    slots: int
    cores: int
    queries: tuple[QueryLine, ...]
    app_name: str | None = None


class BatchLine(Struct, frozen=True, tag_field="kind", tag="batch"):
    """What is read of a batch."""

    query: str
    start_s: float
    end_s: float
    rows: int


Line = StatusLine | BatchLine | ResultEvent | DecisionEvent


@dataclass
class RecordedQuery:
    """One query."""

    spec: QuerySpec
    rows: int = 0  # that it read meanwhile
    batches: list[tuple[int, float]] = field(default_factory=list)  # rows and seconds
    latencies_s: list[float] = field(default_factory=list)

    @property
    def costs(self) -> BatchCosts:
        """What its batches took, as the model of micro-batches wants it."""
        full = np.array([each for each in self.batches if each[0]]).reshape(-1, 2)
        empty = np.array([seconds for rows, seconds in self.batches if not rows])
        usual = BatchCosts()
        if not len(full):
            return usual
        rows, seconds = full[:, 0], full[:, 1]
        cost = BatchCost(forget=1.0, hardly_vary=ALIKE)  # all of the recording counts alike
        for each in full.tolist():
            cost.update(*each)
        per_row_s = cost.per_row_s or 0.0 if len(full) >= LEAST_BATCHES else 0.0
        fixed_s = max(1e-3, float(np.median(seconds - per_row_s * rows)))
        empty_s = float(np.median(empty)) if len(empty) else 0.6 * fixed_s
        return BatchCosts(
            fixed_s=(1 - WAITING) * fixed_s,
            empty_s=(1 - WAITING) * empty_s,
            per_row_s=per_row_s,
            waiting_s=WAITING * fixed_s,
            spread=float(np.clip(np.std(np.log(seconds / np.median(seconds))), 0.0, 1.0)),
        )


@dataclass
class Recording:
    """All of it."""

    app_name: str
    policy: str
    slots: int
    cores: int
    from_s: float
    until_s: float
    queries: dict[str, RecordedQuery]
    decisions: list[DecisionEvent]

    @property
    def seconds(self) -> float:
        return self.until_s - self.from_s

    @property
    def mean_batch_s(self) -> float | None:
        """Over all queries."""
        found = [seconds for query in self.queries.values() for _, seconds in query.batches]
        return float(np.mean(found)) if found else None


def load(path: Path) -> Recording:
    """Read what ``slackwater record`` wrote."""
    try:
        # Not by msgspec: recordings may hold infinity as Python writes it.
        found: list[Any] = [json.loads(line) for line in path.read_text().splitlines()]
        return _recording(msgspec.convert(found, list[Line]))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, IndexError, msgspec.ValidationError):
        raise UsageError(f"{path} is not a recording of slackwater record") from None


def _recording(lines: Sequence[Line]) -> Recording:
    statuses = [line for line in lines if isinstance(line, StatusLine)]
    first, last = statuses[0], statuses[-1]
    queries: dict[str, RecordedQuery] = {}
    for status in statuses:
        for seen in status.queries:
            spec = seen.spec.spec()
            queries.setdefault(spec.name, RecordedQuery(spec)).spec = spec
    for line in lines:
        mine = None if isinstance(line, StatusLine) else queries.get(line.query)
        if mine is None:
            continue
        if isinstance(line, BatchLine):
            mine.batches.append((line.rows, line.end_s - line.start_s))
            mine.rows += line.rows
        elif isinstance(line, ResultEvent):
            mine.latencies_s.append(line.latency_s)
    return Recording(
        app_name=first.app_name or "fleet",
        policy=last.policy,
        slots=last.slots,
        cores=last.cores,
        from_s=first.at_s,
        until_s=last.at_s,
        queries=queries,
        decisions=[line for line in lines if isinstance(line, DecisionEvent)],
    )
