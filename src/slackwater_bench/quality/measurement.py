"""Runs queries under more load than the machine can take, watched second by second."""

import os
import threading
from typing import Any

from slackwater.core.clock import RealClock
from slackwater.core.errors import EngineError
from slackwater.core.protocols import Clock
from slackwater.engines.spark.fleet import Fleet
from slackwater.engines.spark.progress import ran_a_batch, working_time
from slackwater.engines.spark.session.session import session
from slackwater.engines.spark.shedding.loop import QualitySettings
from slackwater.engines.spark.shedding.shedders import Shedders, find_shedders
from slackwater.quality.rates import ShedPlan
from slackwater.traffic import Timeline, Traffic
from slackwater_bench.quality.results import SeenQuery, TrialSample
from slackwater_bench.quality.trial import QualityTrial, QueryPlan
from slackwater_bench.trial import Result
from slackwater_bench.workloads.knn import Knn

START_LIMIT_S = 180.0
LOOK_EVERY_S = 0.5


class Watch:
    """Follows one query: rows taken and kept, by its progress; rows that arrived, by the traffic
    itself, which does not depend on anything that is being measured."""

    def __init__(self, timeline: Timeline, shedders: Shedders) -> None:
        self.timeline = timeline
        self._shedders = shedders
        self.batches: list[tuple[float, float, int, int]] = []  # start, duration, rows, kept

    def take(self, progress: dict[str, Any]) -> None:
        counted = self._shedders.count(progress)
        if counted is not None and ran_a_batch(progress):
            self.batches.append((*working_time(progress), counted.seen, counted.kept))

    def lags(self, until_s: float) -> list[tuple[float, float]]:
        """Return how long the oldest row that was not taken had waited, just before each
        micro-batch takes rows, when that is largest."""
        found, taken = [], 0
        for start_s, _, seen, _ in self.batches:
            found.append((start_s, self._waited_s(start_s, taken)))
            taken += seen
        return [*found, (until_s, self._waited_s(until_s, taken))]

    def _waited_s(self, now_s: float, taken: int) -> float:
        low_us, high_us = self.timeline.start_us - 1, round(now_s * 1e6)
        if self.timeline.count(high_us) <= taken:
            return 0.0
        while high_us - low_us > 1000:
            middle_us = (low_us + high_us) // 2
            if self.timeline.count(middle_us) > taken:
                high_us = middle_us
            else:
                low_us = middle_us
        return now_s - high_us / 1e6


def run(trial: QualityTrial, clock: Clock = RealClock()) -> Result:
    """Run the trial in this process, in a fresh JVM."""
    if trial.cpus:
        os.sched_setaffinity(0, trial.cpus)
    spark = session("slackwater-quality", trial.master)
    spark.sparkContext.setLogLevel("OFF")
    plain = trial.arm != "slackwater"
    start_s = float(int(clock.now()) + 25)  # queries are there when the traffic begins
    fleet = Fleet(
        spark,
        "spark" if plain else trial.policy,
        quality=QualitySettings(**trial.settings),
    )
    with fleet:
        watches = {}
        for plan in trial.queries:
            watches[plan.name] = _start(fleet, trial, plan, start_s)
        fleet.on_progress(lambda name, progress: watches[name].take(progress))
        if not fleet.wait_ready(START_LIMIT_S):
            raise EngineError("the queries did not start in time")
        samples = _watch(fleet, watches, start_s, start_s + trial.seconds, clock)
        ended_s = clock.now()
        failures = fleet.failures
    spark.stop()
    if failures:
        raise EngineError(next(iter(failures.values())))
    return {
        "samples": samples,
        "queries": {name: _figures(watch, start_s, ended_s) for name, watch in watches.items()},
    }


def _figures(watch: Watch, start_s: float, ended_s: float) -> SeenQuery:
    """Return what was seen of a query; times count from the beginning of the traffic."""
    return {
        "lags": [(round(at - start_s, 3), round(lag, 3)) for at, lag in watch.lags(ended_s)],
        "batches": [
            (round(at - start_s, 3), round(took, 3), seen, kept)
            for at, took, seen, kept in watch.batches
        ],
    }


def _start(fleet: Fleet, trial: QualityTrial, plan: QueryPlan, start_s: float) -> Watch:
    traffic = Traffic(start_s=start_s, rate=plan.rate, seed=plan.seed, delays="constant:0ms")
    knn = Knn(traffic=traffic, references=plan.references)
    rows = knn.query(fleet.spark, rows_per_batch=plan.rows_per_batch)
    shedders = find_shedders(rows)
    least = plan.min_accuracy if trial.arm == "slackwater" else None
    writer = rows.writeStream.format("noop")
    fleet.start(writer, name=plan.name, priority=plan.priority, min_accuracy=least)
    if trial.arm.startswith("fixed:"):
        part = ShedPlan(float(trial.arm.removeprefix("fixed:")))
        threading.Thread(target=_keep_renewing, args=(shedders, part), daemon=True).start()
    return Watch(traffic.timeline(), find_shedders(rows))


def _keep_renewing(shedders: Shedders, plan: ShedPlan, clock: Clock = RealClock()) -> None:
    """Put the plan again and again: one that is not renewed is forgotten."""
    while True:
        shedders.put(plan)
        clock.sleep(5.0)


def _watch(
    fleet: Fleet, watches: dict[str, Watch], start_s: float, until_s: float, clock: Clock
) -> list[TrialSample]:
    samples: list[TrialSample] = []
    while clock.now() < until_s:
        clock.sleep(LOOK_EVERY_S)
        now_s = clock.now()
        if now_s < start_s:
            continue
        looks: dict[str, Any] = {}
        for name, watch in watches.items():
            found = fleet.accuracy(name)
            rate = fleet.quality.rate(name)
            arrived = [watch.timeline.count(round(1e6 * at_s)) for at_s in (now_s - 1, now_s)]
            looks[name] = {
                "rate": arrived[1] - arrived[0],
                "rate_estimate": rate,
                **({} if found is None else found._asdict()),
            }
        samples.append({"at_s": round(now_s - start_s, 2), "queries": looks})
    return samples
