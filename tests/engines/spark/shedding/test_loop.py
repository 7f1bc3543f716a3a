"""The loop that sheds, on simulated micro-batches: how close it comes to what is possible."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from slackwater.engines.spark.progress import Arrived
from slackwater.engines.spark.shedding.loop import FIRST_ROWS, Quality, QualityLoop, QualitySettings
from slackwater.engines.spark.shedding.meter import QualityMeter
from slackwater.engines.spark.shedding.shedders import Counted
from slackwater.quality.rates import NO_SHEDDING, ShedPlan
from tests.waiting import eventually


class FakeShedders:
    """Remembers its plan, and counts what the simulation says."""

    def __init__(self, least: float) -> None:
        self.plan = ShedPlan(1.0, 0.0, FIRST_ROWS, least)

    def aim(self, accuracy: float, rows: int | None = None, least: float = 0.0) -> None:
        self.plan = ShedPlan(accuracy, 0.0, rows, least)

    def put(self, plan: ShedPlan) -> None:
        self.plan = plan

    def count(self, progress: dict[str, Any]) -> Counted:
        return Counted(*progress["counted"])

    def arrivals(self) -> list[Arrived]:
        return []

    def close(self) -> None:
        self.plan = NO_SHEDDING


@dataclass
class Simulated:
    """A query whose micro-batches take a fixed time and so much for each row; one core each."""

    name: str
    rate: float
    least: float
    priority: float = 1.0
    fixed_s: float = 0.2
    row_s: float = 1e-4
    read: float = 0.0
    free_s: float = 0.0  # when its current micro-batch ends
    kept: list[tuple[float, int, int]] = field(default_factory=list)
    arrived: float = 0.0
    last_s: float = 0.0

    def quality(self) -> Quality:
        shedders = FakeShedders(self.least)
        return Quality(self.name, self.priority, self.least, shedders, QualityMeter())  # type: ignore[arg-type]

    def step(self, now_s: float, quality: Quality, loop: QualityLoop, slowdown: float) -> float:
        """Run what fits up to a time; seconds of CPU used."""
        busy_s = 0.0
        while self.free_s < now_s:
            start_s = max(self.free_s, self.last_s)
            arrived = self._arrived(start_s)
            waiting = int(arrived - self.read)
            if waiting < 1:
                self.free_s += 0.1
                continue
            taken = quality.shedders.plan.most(waiting)
            rates = quality.shedders.plan.rates(taken)
            kept = round(taken * rates.others)
            duration_s = slowdown * (self.fixed_s + self.row_s * kept)
            self.read += taken
            self.free_s = start_s + max(duration_s, quality.pace_s)
            busy_s += duration_s / slowdown
            self.kept.append((start_s, taken, kept))
            after = self._arrived(start_s + duration_s)
            loop.take(self.name, _progress(start_s, duration_s, taken, kept, after, self.read))
        self.arrived = self._arrived(now_s)
        self.last_s = now_s
        return busy_s

    def _arrived(self, at_s: float) -> float:
        return self.arrived + self.rate * max(at_s - self.last_s, 0.0)

    def accuracy(self, since_s: float) -> float:
        mine = [(taken, kept) for at_s, taken, kept in self.kept if at_s >= since_s]
        return sum(kept for _, kept in mine) / sum(taken for taken, _ in mine)

    def lag_s(self) -> float:
        return (self.arrived - self.read) / self.rate


def _progress(
    start_s: float, duration_s: float, taken: int, kept: int, arrived: float, read: float
) -> dict[str, Any]:
    latest = {"n": arrived, "t": round(1e6 * (start_s + duration_s))}
    return {
        "timestamp": "1970-01-01T00:00:00.000Z",
        "numInputRows": kept,
        "durationMs": {"addBatch": 1, "triggerExecution": 1000 * duration_s},
        "sources": [{"latestOffset": json.dumps(latest), "endOffset": json.dumps({"n": read})}],
        "counted": (taken, kept),
    }


def simulate(
    queries: list[Simulated], seconds: int, cores: float, changes: dict[int, float] | None = None
) -> tuple[QualityLoop, list[float]]:
    """Second by second; the largest lag of each second."""
    paused: list[str] = []
    loop = QualityLoop(QualitySettings(), cores, paused.append, paused.remove)
    qualities = {}
    for query in queries:
        qualities[query.name] = query.quality()
        with loop._lock:
            loop._queries[query.name] = qualities[query.name]
    lags, slowdown = [], 1.0
    for second in range(1, seconds + 1):
        for query in queries:
            query.rate *= (changes or {}).get(second, 1.0)
        used = sum(q.step(second, qualities[q.name], loop, slowdown) for q in queries)
        wanted = used * slowdown
        slowdown = max(1.0, wanted / cores)
        loop._machine.look = lambda used=used: (1.0, min(used, cores), 0.0)  # type: ignore[method-assign]
        loop._cycle()
        lags.append(max(query.lag_s() for query in queries))
    assert not paused
    return loop, lags


def test_twice_what_can_be_done_is_shed_to_nearly_what_can_be_done() -> None:
    """At 8,000 rows/s and micro-batches of a second the core is full."""
    query = Simulated("a", rate=16_000, least=0.05)
    _, lags = simulate([query], 120, cores=2)
    assert max(lags[10:]) < 2.0
    assert query.accuracy(since_s=10) > 0.9 * 0.5


def test_a_query_that_fits_is_not_shed() -> None:
    query = Simulated("a", rate=4000, least=0.05)
    simulate([query], 60, cores=2)
    assert query.accuracy(since_s=10) > 0.999


def test_accuracy_comes_back_when_load_falls() -> None:
    query = Simulated("a", rate=30_000, least=0.05)
    loop, _ = simulate([query], 90, cores=2, changes={50: 0.1})
    assert query.accuracy(since_s=70) == 1.0
    found = loop.get("a")
    assert found is not None
    assert found.desired == pytest.approx(1.0)


def test_the_important_is_not_shed_while_the_other_has_something_to_give() -> None:
    """One core for two queries, either of which would nearly fill it."""
    low = Simulated("low", rate=5000, least=0.1, priority=1)
    high = Simulated("high", rate=5000, least=0.1, priority=5)
    _, lags = simulate([low, high], 90, cores=1)
    assert high.accuracy(since_s=15) > 0.99
    assert 0.1 <= low.accuracy(since_s=15) < 0.7
    assert max(lags[15:]) < 4.0


def test_the_first_micro_batches_stay_small_however_long_a_start_takes() -> None:
    query = Simulated("a", rate=30_000, least=0.05)
    loop = QualityLoop(QualitySettings(), 2, print, print)
    loop._queries["a"] = quality = query.quality()
    quality.shedders.put(NO_SHEDDING)  # what was said before the start has run out
    loop._cycle()
    assert quality.shedders.plan == ShedPlan(1.0, 0.0, FIRST_ROWS, 0.05)


def test_a_batch_longer_than_a_cycle_is_set_against_the_cpu_of_all_its_cycles() -> None:
    quality = Simulated("a", rate=1000, least=0.1).quality()
    loop = QualityLoop(QualitySettings(), 1, print, print)
    loop._machine.look = lambda: (1.0, 0.9, 0.0)  # type: ignore[method-assign]
    for second in range(40):
        quality.meter.busy_s += 2.0 if second % 2 else 0.0
        loop._measure([quality])
    assert loop._cores_per_batch == pytest.approx(0.9, rel=0.15)


def test_what_is_switched_off_sheds_nothing_and_lets_everybody_run() -> None:
    resumed: list[str] = []
    query = Simulated("a", rate=30_000, least=0.05)
    loop = QualityLoop(QualitySettings(period_s=0.01), 2, print, resumed.append)
    quality = query.quality()
    quality.paused = True
    quality.shedders.aim(0.1, 100, 0.05)
    loop.enabled = False
    loop.add(quality)
    eventually(lambda: resumed == ["a"] and quality.shedders.plan == NO_SHEDDING)
    loop.close()


def test_a_cycle_that_fails_sheds_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    quality = Simulated("a", rate=30_000, least=0.05).quality()
    quality.shedders.aim(0.1, 100, 0.05)
    loop = QualityLoop(QualitySettings(period_s=0.01), 2, print, print)
    monkeypatch.setattr(loop, "_cycle", lambda: 1 / 0)
    loop.add(quality)
    eventually(lambda: quality.shedders.plan == NO_SHEDDING)
    loop.close()


def test_a_query_that_comes_back_begins_at_its_minimum() -> None:
    loop, _ = simulate([Simulated("a", rate=1000, least=0.4)], 20, cores=2)
    quality = loop.get("a")
    assert quality is not None
    quality.applied = 0.0  # as while it was stopped
    loop._cycle()
    assert quality.applied == 0.4
