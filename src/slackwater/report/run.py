"""One run of one policy, as a report sees it."""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from slackwater.report.reading import entries, mapping, number, numbers
from slackwater.statistics.intervals import Array


@dataclass(frozen=True, slots=True)
class Run:
    """What is missing in the result is ``None`` or empty here, so that plots can leave it out."""

    policy: str
    repeat: int
    queries: int
    latencies_s: Array  # of every window, finite
    ideals_s: Array  # the same windows; empty if not known for all
    watermark_delay_s: float  # part of every latency
    expected: float | None  # windows
    emitted: float | None
    wrong: float | None
    throughput_eps: float | None
    batches: float | None
    cpu_s: float | None
    controller_cpu_s: float | None
    drained: bool
    samples: list[dict[str, Any]]

    @classmethod
    def read(cls, raw: dict[str, Any], queries: int) -> Self:
        """Read a run of a result.

        Parameters
        ----------
        raw
            An entry of ``runs``.
        queries
            How many there were if the run does not say.

        >>> run = Run.read({"policy": "fcfs", "latencies_s": [1.5, None]}, queries=8)
        >>> run.policy, run.queries, run.latencies_s.tolist(), run.cpu_s
        ('fcfs', 8, [1.5], None)
        """
        latencies, ideals = numbers(raw.get("latencies_s")), numbers(raw.get("ideal_s"))
        kept = np.isfinite(latencies)
        windows = mapping(raw.get("windows"))
        count, repeat = number(raw.get("queries")), number(raw.get("repeat"))
        return cls(
            policy=str(raw.get("policy", "?")),
            repeat=0 if repeat is None else int(repeat),
            queries=queries if count is None else int(count),
            latencies_s=latencies[kept],
            ideals_s=ideals[kept] if len(ideals) == len(latencies) else np.empty(0),
            watermark_delay_s=number(raw.get("watermark_delay_s")) or 0.0,
            expected=number(windows.get("expected")),
            emitted=number(windows.get("emitted")),
            wrong=number(windows.get("wrong")),
            throughput_eps=number(raw.get("throughput_eps")),
            batches=number(raw.get("batches")),
            cpu_s=number(raw.get("cpu_s")),
            controller_cpu_s=number(raw.get("controller_cpu_s")),
            drained=raw.get("drained") is not False,
            samples=entries(raw.get("samples")),
        )

    @property
    def slowdowns(self) -> Array:
        """Latency ÷ ideal latency of each window, both without the watermark's delay.

        >>> raw = {"latencies_s": [2.3, 1.3], "ideal_s": [0.8, 0.8], "watermark_delay_s": 0.3}
        >>> Run.read(raw, 1).slowdowns.round(6).tolist()
        [4.0, 2.0]
        """
        if not len(self.ideals_s):
            return np.empty(0)
        ideals = self.ideals_s - self.watermark_delay_s
        # Below a millisecond, the resolution of Spark's times, the ratio means nothing.
        sound = np.isfinite(ideals) & (ideals >= 0.001)
        slowdowns: Array = (self.latencies_s - self.watermark_delay_s)[sound] / ideals[sound]
        return slowdowns

    @property
    def overhead_percent(self) -> float | None:
        """The controller's share of all CPU.

        >>> Run.read({"cpu_s": 40.0, "controller_cpu_s": 0.2}, 1).overhead_percent
        0.5
        """
        if not self.cpu_s or self.controller_cpu_s is None:
            return None
        return 100 * self.controller_cpu_s / self.cpu_s
