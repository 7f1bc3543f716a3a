"""A recording as it is read back."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from slackwater.core.errors import UsageError
from slackwater.core.model import QuerySpec
from slackwater.engines.simulator.query import BatchCosts
from slackwater.engines.spark.control.driver import read_spec

WAITING = 0.2  # part of a batch that is waiting for disks and the slowest task, not work
LEAST_BATCHES = 3  # to tell what a row costs


@dataclass
class QueryStory:
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
        slope = np.polyfit(rows, seconds, 1)[0] if _varies(rows) else 0.0
        per_row_s = float(np.clip(slope, 0.0, seconds.mean() / rows.mean()))
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
class Story:
    """All of it."""

    app_name: str
    policy: str
    slots: int
    cores: int
    from_s: float
    until_s: float
    queries: dict[str, QueryStory]
    decisions: list[dict[str, Any]]

    @property
    def seconds(self) -> float:
        return self.until_s - self.from_s

    @property
    def mean_batch_s(self) -> float | None:
        """Over all queries."""
        found = [seconds for query in self.queries.values() for _, seconds in query.batches]
        return float(np.mean(found)) if found else None


def load(path: Path) -> Story:
    """Read what ``slackwater record`` wrote."""
    try:
        entries = [json.loads(line) for line in path.read_text().splitlines()]
        statuses = [entry for entry in entries if entry["kind"] == "status"]
        return _story(statuses, entries)
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, IndexError):
        raise UsageError(f"{path} is not a recording of slackwater record") from None


def _story(statuses: Sequence[dict[str, Any]], entries: Sequence[dict[str, Any]]) -> Story:
    first, last = statuses[0], statuses[-1]
    queries: dict[str, QueryStory] = {}
    for status in statuses:
        for seen in status["queries"]:
            spec = read_spec({"query": seen["spec"]["name"], **seen["spec"]})
            queries.setdefault(spec.name, QueryStory(spec)).spec = spec
    for entry in entries:
        mine = queries.get(entry.get("query", ""))
        if mine is None:
            continue
        if entry["kind"] == "batch":
            mine.batches.append((entry["rows"], entry["end_s"] - entry["start_s"]))
            mine.rows += entry["rows"]
        elif entry["kind"] == "result":
            mine.latencies_s.append(entry["latency_s"])
    return Story(
        app_name=first.get("app_name") or "fleet",
        policy=last["policy"],
        slots=last["slots"],
        cores=last["cores"],
        from_s=first["at_s"],
        until_s=last["at_s"],
        queries=queries,
        decisions=[entry for entry in entries if entry["kind"] == "decision"],
    )


def _varies(rows: np.ndarray) -> bool:
    return len(rows) >= LEAST_BATCHES and float(np.ptp(rows)) > 0
