"""The runs of a result as a report sees them; what is missing or broken in it is left out."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

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


class Runs:
    """The runs of a result.

    Parameters
    ----------
    result
        What ``--json`` writes; anything in it may be missing.

    >>> runs = Runs({"queries": 8, "runs": [{"policy": "b"}, {"policy": "a"}, None]})
    >>> runs.policies, runs.counts
    (['b', 'a'], [8])
    """

    def __init__(self, result: dict[str, Any]) -> None:
        queries = int(number(result.get("queries")) or 0)
        self.every = [Run.read(raw, queries) for raw in entries(result.get("runs"))]
        self.policies = list(dict.fromkeys(run.policy for run in self.every))
        self.counts = sorted({run.queries for run in self.every})

    @property
    def largest(self) -> int:
        """The number of queries that plots of a single number show: the heaviest load."""
        return self.counts[-1] if self.counts else 0

    def of(self, policy: str, queries: int) -> list[Run]:
        """Return the repeats of a policy in their order."""
        mine = [run for run in self.every if (run.policy, run.queries) == (policy, queries)]
        return sorted(mine, key=lambda run: run.repeat)

    def latencies(self, policy: str, queries: int) -> list[Array]:
        """Return latencies of every window, an array for each run that has some."""
        found = [run.latencies_s for run in self.of(policy, queries)]
        return [values for values in found if len(values)]

    def slowdowns(self, policy: str, queries: int) -> list[Array]:
        """Return slowdowns of every window, an array for each run that has some."""
        found = [run.slowdowns for run in self.of(policy, queries)]
        return [values for values in found if len(values)]

    def figures(
        self, policy: str, queries: int, figure: Callable[[Run], float | None]
    ) -> list[list[float]]:
        """Return one figure of each run that has it, in the shape that intervals want.

        >>> runs = Runs({"queries": 8, "runs": [{"policy": "a", "cpu_s": 3.0}, {"policy": "a"}]})
        >>> runs.figures("a", 8, lambda run: run.cpu_s)
        [[3.0]]
        """
        found = [figure(run) for run in self.of(policy, queries)]
        return [[value] for value in found if value is not None]


def number(value: Any) -> float | None:
    """Return a finite number, or nothing.

    >>> number(3), number("3"), number(None), number(float("nan")), number(True)
    (3.0, None, None, None, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def numbers(value: Any) -> Array:
    """Return numbers in their order, ``nan`` for what is none, so that places still match.

    >>> numbers([1, None, 2.5]).tolist(), numbers("no list").tolist()
    ([1.0, nan, 2.5], [])
    """
    if not isinstance(value, list | tuple):
        return np.empty(0)
    found = [number(item) for item in value]
    return np.array([math.nan if item is None else item for item in found], dtype=np.float64)


def entries(value: Any) -> list[dict[str, Any]]:
    """Return the dictionaries of a list.

    >>> entries([{"a": 1}, None, 3]), entries(None)
    ([{'a': 1}], [])
    """
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def mapping(value: Any) -> dict[str, Any]:
    """Return a dictionary, empty if the value is none.

    >>> mapping({"a": 1}), mapping(7)
    ({'a': 1}, {})
    """
    return value if isinstance(value, dict) else {}
