"""The fleet of ``slackwater bench mixed``, as far as the model of micro-batches has its kinds.

Sessions, joins and listings of files are not in the model; windows over bursts are there instead.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from slackwater.engines.simulator.prediction import MEASURED, START_S
from slackwater.engines.simulator.query import SimulatedQuery
from slackwater.engines.simulator.sweeps import first_arrivals
from slackwater.traffic import Traffic
from slackwater_bench.mixed.shape import DELAY_S, FRESH_S, RATE, SLEEP_S, in_proportion

DELAYS = "uniform:0:300ms"
WAITS = 2.5  # times the distance of its windows: how long a query is held at most
LEAST_WAIT_S = 10.0
SAMPLES = 3000


@dataclass(frozen=True, kw_only=True)
class MixedKind:
    """One kind of query."""

    name: str
    count: int  # of a fleet of 25
    options: Mapping[str, Any] = field(default_factory=dict)  # of its simulated queries
    rate: str = f"{RATE:g}"
    silent: bool = False  # its input never comes
    sleeps_s: float = 0.0  # its sink waits so long, without work

    @property
    def latency(self) -> bool:
        """Whether windows tell how good it is; else the age of what it shows."""
        windowed: bool = self.options.get("windowed", True)
        return windowed and "output_mode" not in self.options

    @property
    def source_s(self) -> float | None:
        """Return the mean latency that the source alone makes; None where it is the age."""
        if not self.latency:
            return None
        drawn = first_arrivals(RATE, DELAYS).draw(np.random.default_rng(0), SAMPLES)
        return DELAY_S + float(drawn.mean())

    def query(self, number: int, seed: int) -> SimulatedQuery:
        """Return one query of this kind; all windows are aligned, as Spark's are."""
        distance_s = self.options.get("slide_s") or self.options.get("window_s", 0.0)
        costs = MEASURED.costs
        return SimulatedQuery(
            name=f"{self.name} {number}",
            traffic=Traffic(
                start_s=START_S,
                stop_s=START_S if self.silent else None,
                rate=self.rate,
                delays=DELAYS,
                seed=1000 * seed + number,
            ),
            costs=replace(costs, waiting_s=costs.waiting_s + self.sleeps_s),
            watermark_s=DELAY_S,
            max_wait_s=max(LEAST_WAIT_S, WAITS * distance_s),
            one_batch=True,
            **self.options,
        )


_STATELESS = {"windowed": False}

KINDS = (
    MixedKind(name="windows of 10 s", count=5, options={"window_s": 10.0}),
    MixedKind(name="windows of 1 min", count=1, options={"window_s": 60.0}),
    MixedKind(name="1 min every 20 s", count=3, options={"window_s": 60.0, "slide_s": 20.0}),
    MixedKind(
        name="windows over bursts",
        count=2,
        options={"window_s": 10.0},
        rate=f"burst:{RATE:g}:5000:every=30:for=3",
    ),
    MixedKind(
        name="dashboards (update)",
        count=3,
        options={"window_s": 60.0, "output_mode": "update", "target_s": FRESH_S},
    ),
    MixedKind(name="stateless", count=3, options=_STATELESS),
    MixedKind(name="stateless, 2 s", count=2, options=_STATELESS | {"target_s": FRESH_S}),
    MixedKind(name="slow sink", count=1, options=_STATELESS, sleeps_s=SLEEP_S),
    MixedKind(name="silent", count=5, options={"window_s": 10.0}, silent=True),
)


def mixed_fleet(queries: int, seed: int = 1) -> dict[str, list[SimulatedQuery]]:
    """Return so many queries by kind, in the proportions of the real fleet.

    >>> {kind: len(found) for kind, found in mixed_fleet(50).items()}["windows of 10 s"]
    10
    """
    counts = in_proportion(queries, [kind.count for kind in KINDS])
    numbers = iter(range(queries))
    return {
        kind.name: [kind.query(next(numbers), seed) for _ in range(count)]
        for kind, count in zip(KINDS, counts, strict=True)
    }
