"""Compares every measured window of a trial with the ground truth."""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from slackwater.engines.spark.progress import batch_end_s, ran_a_batch, working_time
from slackwater.statistics.intervals import summary
from slackwater_bench.emissions import Emission, Progress, emissions, wasted
from slackwater_bench.klink.ideal import Ideal
from slackwater_bench.workloads.base import Workload


class Judge:
    """Takes the queries of a trial one by one; the verdict is what a run carries of them.

    Parameters
    ----------
    first_s, last_s
        The measured time: windows that end in it count, and batches that end in it.
    asking
        Whether asking sources for their offsets is work. Under a source gate it is waiting.
    """

    def __init__(self, first_s: float, last_s: float, asking: bool = True) -> None:
        self.first_s, self.last_s = first_s, last_s
        self.asking = asking
        self._latencies: list[float] = []
        self._ideals: list[float | None] = []
        self._windows = {"expected": 0, "emitted": 0, "wrong": 0}
        self._counts = {"events": 0, "batches": 0, "wasted": 0}
        self._durations_s: dict[str, list[float]] = {"with_rows": [], "without_rows": []}
        self._watermark_delay_us = 0

    def take(self, workload: Workload, table: pa.Table, progresses: Sequence[Progress]) -> None:
        """Take one query: what it should have given, its sink's rows, its progress events."""
        delay_us = 1000 * workload.watermark_ms
        found = emissions(table, workload.columns, progresses, self.asking, delay_us)
        self._compare(workload, found)
        self._count(progresses)
        self._watermark_delay_us = max(self._watermark_delay_us, delay_us)

    def verdict(self) -> dict[str, Any]:
        """Return the figures, with keys as in docs/bench-json.md."""
        seconds = self.last_s - self.first_s
        return {
            "latency_s": summary(self._latencies),
            "latencies_s": [round(value, 3) for value in self._latencies],
            "ideal_s": [None if value is None else round(value, 3) for value in self._ideals],
            "watermark_delay_s": self._watermark_delay_us / 1e6,
            "windows": dict(self._windows),
            "throughput_eps": round(self._counts["events"] / seconds, 1),
            "batch_s": {kind: summary(found) for kind, found in self._durations_s.items()},
            "batches_without_rows": len(self._durations_s["without_rows"]),
        } | self._counts

    def _compare(self, workload: Workload, found: Mapping[int, Emission]) -> None:
        ideal = Ideal(workload)
        truth = workload.truth(round(self.first_s * 1e6), round(self.last_s * 1e6))
        for end_us, wanted in truth.items():
            emission = found.get(end_us)
            if emission is None:
                self._windows["expected"] += bool(wanted)  # a window without rows never comes
                continue
            self._windows["expected"] += 1
            self._windows["emitted"] += 1
            self._windows["wrong"] += emission.rows != wanted
            self._latencies.append(emission.done_s - end_us / 1e6)
            work_s = emission.work_s
            self._ideals.append(None if work_s is None else ideal.latency_s(end_us, work_s))

    def _count(self, progresses: Sequence[Progress]) -> None:
        ran = [progress for progress in progresses if ran_a_batch(progress)]
        mine = [p for p in ran if self.first_s < batch_end_s(p) <= self.last_s]
        self._counts["batches"] += len(mine)
        self._counts["events"] += sum(_events(p) for p in mine)
        for each in mine:
            kind = "with_rows" if each["numInputRows"] else "without_rows"
            self._durations_s[kind].append(working_time(each)[1])
        self._counts["wasted"] += wasted(progresses, self.first_s, self.last_s)


def _events(progress: Progress) -> int:
    """Count input rows of a batch, once where a query reads its stream several times.

    >>> _events({"numInputRows": 300, "sources": [{"numInputRows": 100}] * 3})
    100
    """
    reads = [int(source["numInputRows"]) for source in progress.get("sources", ())]
    return max(reads, default=int(progress["numInputRows"]))
