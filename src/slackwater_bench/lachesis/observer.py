"""What an observer sees of the engines while an arm is on."""

import json
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import pstdev
from typing import Any

import numpy as np

from slackwater.core.clock import RealClock, Timer
from slackwater.core.entities import Reading, Values
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines import outside
from slackwater.engines.outside import Driver
from slackwater.metrics import MetricProvider
from slackwater_bench.lachesis.figures import EngineFigures

LOOK_EVERY_S = 0.5
METRICS = ("queue-size", "head-age")


@dataclass
class Samples:
    """Of one engine in one slice; one value for each look unless said otherwise."""

    spread: list[float] = field(default_factory=list)  # of queue sizes: what Queue Size is after
    middle: list[float] = field(default_factory=list)  # between their quartiles
    queued: list[float] = field(default_factory=list)  # tuples in all queues
    oldest_s: list[float] = field(default_factory=list)  # what First Come First Served is after
    latency_s: list[float] = field(default_factory=list)  # of results: Highest Rate
    sizes: list[float] = field(default_factory=list)  # of every queue at every look
    begun: dict[str, float] = field(default_factory=dict)  # counters at the first look
    ended: dict[str, float] = field(default_factory=dict)
    first_s: float | None = None
    last_s: float = 0.0

    def result(self) -> EngineFigures:
        """Return what was seen."""
        passed_s = self.last_s - (self.first_s or 0.0)
        if self.first_s is None or passed_s <= 0:
            raise EngineError("an engine did not answer for a whole slice")
        return {
            "spread": self.spread,
            "middle": self.middle,
            "queued": self.queued,
            "oldest_s": self.oldest_s,
            "latency_s": self.latency_s,
            "sizes": [round(size, 1) for size in self.sizes],
            "rows_per_s": {
                name: max(0.0, self.ended[name] - self.begun[name]) / passed_s
                for name in ("in", "out")
            },
            "cores": max(0.0, self.ended["cpu"] - self.begun["cpu"]) / passed_s,  # of operators
            "looks": len(self.spread),
        }


class Observer:
    """Looks at one engine through drivers of its own.

    Parameters
    ----------
    name
        Of the engine.
    sections
        What the middleware's file says of each of its processes.
    tallies
        Where these write rows and latencies of their queries; without, both come from the counters
        of the operators.
    clock
        Where time comes from.
    """

    def __init__(
        self,
        name: str,
        sections: dict[str, dict[str, Any]],
        tallies: Sequence[Path] = (),
        clock: Clock = RealClock(),
    ) -> None:
        self.name = name
        self._clock = clock
        self._drivers = [_driver(label, **section) for label, section in sections.items()]
        self._provider = MetricProvider(name, self._drivers[0].provides, METRICS)
        self._tallies = tallies
        self._before: dict[str, float] = {}
        self.samples = Samples()

    def begin(self) -> None:
        self.samples = Samples()

    def look(self, counts: bool) -> None:
        """Take a sample; where it does not count yet, only follow the counters."""
        try:
            reading = merged([driver.read(self._clock.now()) for driver in self._drivers])
        except EngineError:
            return
        values = self._provider.update(reading)
        if counts and values["queue-size"]:
            self._note(reading, values)

    def _note(self, reading: Reading, values: dict[str, Values]) -> None:
        samples, sizes = self.samples, list(values["queue-size"].values())
        samples.spread.append(pstdev(sizes))
        low, high = np.quantile(sizes, (0.25, 0.75))
        samples.middle.append(float(high - low))
        samples.queued.append(sum(sizes))
        samples.oldest_s.append(max(values["head-age"].values()))
        samples.sizes += sizes
        counters = tallied(self._tallies) if self._tallies else rows_of(reading)
        counters["cpu"] = sum(reading.metrics["cpu-time"].values())
        if samples.first_s is None:
            samples.first_s, samples.begun, self._before = reading.at_s, counters, counters
        latency_s = latency(reading, values["head-age"], self._before, counters)
        if latency_s is not None:
            samples.latency_s.append(latency_s)
        samples.last_s, samples.ended, self._before = reading.at_s, counters, counters


def _driver(label: str, driver: str, **parameters: Any) -> Driver:
    return outside.load(driver, label=label, **parameters)


def merged(readings: Sequence[Reading]) -> Reading:
    """Put together what several processes say, whose operators have names of their own."""
    metrics: dict[str, Values] = {}
    for reading in readings:
        for metric, values in reading.metrics.items():
            metrics[metric] = {**metrics.get(metric, {}), **values}
    operators = tuple(operator for reading in readings for operator in reading.operators)
    return Reading(readings[-1].at_s, operators, metrics)


def latency(
    reading: Reading, ages: Values, before: dict[str, float], after: dict[str, float]
) -> float | None:
    """Return the mean of what came out between two looks; ``None`` if nothing did.

    Where the engine tells no latencies, a result is as old as the first tuple before the operator
    that gives it, and each query counts by the results it gave.
    """
    if "latency" in after:
        rows = after["out"] - before["out"]
        return (after["latency"] - before["latency"]) / rows if rows > 0 else None
    ends = [o.name for o in reading.operators if not o.downstream and o.name in ages]
    weights = {
        name: after.get(f"out {name}", 0.0) - before.get(f"out {name}", 0.0) for name in ends
    }
    total = sum(weights.values())
    if total <= 0:
        return None
    return sum(ages[name] * weight for name, weight in weights.items()) / total


def rows_of(reading: Reading) -> dict[str, float]:
    """Count rows that came in at the sources and out at the ends so far, in all and by operator."""
    taken, written = reading.metrics.get("tuples-in", {}), reading.metrics.get("tuples-out", {})
    found = {"in": 0.0, "out": 0.0}
    for operator in reading.operators:
        if operator.source:
            found["in"] += written.get(operator.name, 0.0)
        elif not operator.downstream and not operator.helper:
            rows = taken.get(operator.name, 0.0)
            found["out"] += rows
            found[f"out {operator.name}"] = rows
    return found


def tallied(paths: Iterable[Path]) -> dict[str, float]:
    """Count the same from applications that keep count themselves."""
    rows = latency_s = 0.0
    for path in paths:
        with suppress(OSError, ValueError):  # nothing has ended yet
            for done, waited_s in json.loads(path.read_text()).values():
                rows += done
                latency_s += waited_s
    return {"in": rows, "out": rows, "latency": latency_s}


def watch(
    observers: list[Observer], slice_s: float, settle_s: float, clock: Clock = RealClock()
) -> None:
    """Look again and again for so long; the first part does not count."""
    timer = Timer(clock)
    for observer in observers:
        observer.begin()
    while (passed_s := timer.elapsed_s) < slice_s:
        for observer in observers:
            observer.look(counts=passed_s >= settle_s)
        clock.sleep(LOOK_EVERY_S)
