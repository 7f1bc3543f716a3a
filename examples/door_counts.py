"""A workload of your own: people who pass doors, counted by door and window.

    slackwater bench examples.door_counts:DoorCounts --policies spark-trigger:0.5,klink

It has events (each a function of seed, partition and number), a query, and the truth about its
results. ``slackwater_bench.testing.check_workload(DoorCounts)`` tells what is missing.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark.sql import DataFrame

from slackwater.traffic import BLOCK, block_generator, gather
from slackwater_bench.workloads.base import Rows, Workload

Ints = NDArray[np.int64]


class DoorEvents:
    """Makes the columns of events; the column of times is added by the feed."""

    schema = "door bigint"
    event_time = "event_time"

    def __init__(self, *, seed: int, doors: int) -> None:
        self.seed, self.doors = seed, doors

    def columns(self, partition: int, index: Ints) -> dict[str, pa.Array]:
        """Return the columns of ``schema`` of the events with these numbers."""

        def draw(block: int) -> Ints:
            return block_generator(self.seed, partition, block, "doors").integers(
                0, self.doors, size=(1, BLOCK)
            )

        (doors,) = gather(index, draw)
        return {"door": pa.array(doors)}


@dataclass(frozen=True, kw_only=True)
class DoorCounts(Workload):
    """Counts people by door in windows of five seconds."""

    name: ClassVar[str] = "door-counts"
    columns: ClassVar[tuple[str, ...]] = ("door", "count")

    window_s: float = 5.0
    doors: int = 20

    @property
    def _generator(self) -> type[DoorEvents]:
        return DoorEvents

    @property
    def _arguments(self) -> dict[str, Any]:
        return {"doors": self.doors}

    def _results(self, events: DataFrame) -> DataFrame:
        window = self.windows.column("event_time").alias("window")
        return events.groupBy(window, "door").count()

    def _truth_of(self, end_us: int) -> Rows:
        seen: Counter[int] = Counter()
        for partition, index in self._numbers(end_us):
            seen.update(self.events.columns(partition, index)["door"].to_pylist())
        return Counter(seen.items())
