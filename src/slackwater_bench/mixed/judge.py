"""Judges the queries of a mixed fleet, by kind."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from slackwater.engines.spark.progress import batch_end_s, instant_s
from slackwater.engines.spark.sources.newest import NEWEST, OBSERVATION
from slackwater.statistics.intervals import summary
from slackwater_bench.emissions import Progress, emissions
from slackwater_bench.freshness import ages_of, kept_share
from slackwater_bench.mixed.files import EVERY_S
from slackwater_bench.mixed.kinds import COLUMNS, Kind
from slackwater_bench.mixed.shape import DELAY_S

_NEVER = "1970-01-01T00:00:00Z"


class KindJudge:
    """Takes the queries of a trial one by one."""

    def __init__(self, first_s: float, last_s: float) -> None:
        self.first_s, self.last_s = first_s, last_s
        self._seconds: dict[str, list[float]] = defaultdict(list)  # by kind: latencies or ages
        self._least: dict[str, list[float]] = defaultdict(list)  # what the source alone makes
        self._missing: dict[str, int] = defaultdict(int)
        self._batches: dict[str, int] = defaultdict(int)
        self._queries: dict[str, int] = defaultdict(int)
        self._mistakes: dict[str, list[str]] = {}
        self._kinds: dict[str, Kind] = {}

    @staticmethod
    def watermark_s(progress: Progress) -> float:
        """Return the watermark that a batch ran with."""
        return instant_s(progress.get("eventTime", {}).get("watermark", _NEVER))

    def take(self, query: str, kind: Kind, results: pa.Table, batches: Sequence[Progress]) -> None:
        """Take one query: what is in its sink, and the batches that it ran."""
        self._kinds[kind.name] = kind
        self._queries[kind.name] += 1
        self._batches[kind.name] += sum(
            self.first_s < batch_end_s(batch) <= self.last_s for batch in batches
        )
        if wrong := kind.mistakes(results):
            self._mistakes[query] = wrong
        if kind.windowed:
            self._take_windows(kind, results, batches)
        else:
            self._seconds[kind.name] += ages(batches, self.first_s, self.last_s)

    def _take_windows(self, kind: Kind, results: pa.Table, batches: Sequence[Progress]) -> None:
        found = emissions(results, COLUMNS, batches)
        first_us, last_us = round(self.first_s * 1e6), round(self.last_s * 1e6)
        for end_us, emission in found.items():
            if first_us < end_us <= last_us:
                self._seconds[kind.name].append(emission.done_s - end_us / 1e6)
                _, low, _, begin_us = next(iter(emission.rows))
                apart_us = round(1e6 / kind.rows_a_second)
                self._least[kind.name].append(least_s(end_us, begin_us - low * apart_us))
        expected = kind.ends(self.first_s, self.last_s)
        if expected is not None:
            self._missing[kind.name] += len(expected - found.keys())

    def verdict(self) -> dict[str, Any]:
        """Return the figures, with keys as in docs/bench-json.md."""
        return {
            "kinds": {
                name: {
                    "queries": self._queries[name],
                    "measure": "latency" if kind.windowed else "age",
                    "seconds": summary(self._seconds[name]),
                    "source_s": summary(self._least[name])["mean"],
                    "target_s": kind.target_s,
                    "kept": kept_share(self._seconds[name], kind.target_s),
                    "missing": self._missing[name],
                    "batches": self._batches[name],
                }
                for name, kind in self._kinds.items()
            },
            "mistakes": self._mistakes,
        }


def least_s(end_us: int, source_us: int) -> float:
    """Return how long after a window's end the row that completes it can be read.

    Sources here bring the rows of every second together, when it is over.

    >>> least_s(10_000_000, source_us=300_000)
    1.3
    """
    row_us = end_us + DELAY_S * 1e6
    seconds = math.floor((row_us - source_us) / (EVERY_S * 1e6)) + 1
    return round((source_us + seconds * EVERY_S * 1e6 - end_us) / 1e6, 6)


def ages(batches: Sequence[Progress], first_s: float, last_s: float) -> list[float]:
    """Return how old the newest row shown was, at many times of a stretch.

    >>> batch = {"timestamp": "1970-01-01T00:00:10Z", "numInputRows": 1, "batchId": 1,
    ...     "durationMs": {"triggerExecution": 1000, "addBatch": 9},
    ...     "observedMetrics": {"slackwater": {"newest_us": 9_000_000}}}
    >>> found = ages([batch], 11.0, 12.0)
    >>> round(found[0], 2), round(found[-1], 2), len(found)
    (2.0, 2.95, 20)
    """
    shown = [
        (batch_end_s(batch), newest / 1e6)
        for batch in batches
        if (newest := ((batch.get("observedMetrics") or {}).get(OBSERVATION) or {}).get(NEWEST))
    ]
    return ages_of(shown, first_s, last_s)
