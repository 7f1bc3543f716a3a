"""A mixed fleet under one policy, on the engine of micro-batches."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from slackwater import policies
from slackwater.core.clock import Timer, VirtualClock
from slackwater.core.controller import Controller
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.prediction import MEASURED, START_S
from slackwater.engines.simulator.query import SimulatedQuery
from slackwater_bench.freshness import ages_of, kept_share
from slackwater_bench.simulate.mixed_fleet import KINDS, MixedKind, mixed_fleet

PATIENCE_S = 30.0  # after the counted time, for windows that end within it


@dataclass(frozen=True, slots=True)
class MixedSimulation:
    """What is simulated."""

    policy: str
    queries: int = 500
    cores: int = 16
    seconds: float = 120.0  # of virtual time
    warmup_s: float = 60.0  # before it, not counted
    seed: int = 1


def simulate_mixed(trial: MixedSimulation) -> list[dict[str, Any]]:
    """Simulate it; return a row for each kind of query, as it goes to JSON."""
    timer = Timer()
    fleet = mixed_fleet(trial.queries, trial.seed)
    policy, clock = policies.load(trial.policy, seed=trial.seed), VirtualClock(START_S)
    machine = MEASURED.machine(trial.cores)
    engine = MicroBatchEngine(
        clock,
        [query for queries in fleet.values() for query in queries],
        cores=machine.cores,
        slots=machine.admitted,
        gated=policy.gated,
        logged=False,
    )
    controller = Controller(engine, policy, engine, clock, remember=1)
    first_s = START_S + trial.warmup_s
    last_s = first_s + trial.seconds

    def run(until_s: float) -> None:
        if policy.gated:
            controller.run(lambda: clock.now() >= until_s)
        while clock.now() < until_s:  # nobody is held, so nobody need decide
            engine.wait(until_s)

    run(first_s)
    busy_s = engine.cores.busy_s
    run(last_s)
    busy_cores = (engine.cores.busy_s - busy_s) / trial.seconds
    judge = _Judge(engine, first_s, last_s)
    while clock.now() < last_s + PATIENCE_S and any(map(judge.misses, _windowed(fleet))):
        run(clock.now() + 1.0)
    judge.end()
    shared = {"nodes": 1, "busy_cores": busy_cores, "busy": round(busy_cores / machine.cores, 4)}
    shared |= {"took_s": timer.elapsed_s}
    return [
        asdict(trial) | judge.row(kind, fleet[kind.name]) | shared
        for kind in KINDS
        if fleet[kind.name]
    ]


def _windowed(fleet: Mapping[str, Sequence[SimulatedQuery]]) -> Iterator[SimulatedQuery]:
    """Yield the queries of whose windows results must come."""
    for kind in KINDS:
        if kind.latency and not kind.silent:
            yield from fleet[kind.name]


class _Judge:
    """Sums up what the queries of a kind have shown."""

    def __init__(self, engine: MicroBatchEngine, first_s: float, last_s: float) -> None:
        self._engine = engine
        self._first_s, self._last_s = first_s, last_s
        self._executions = engine.executions()
        self._done_s: dict[tuple[str, float], float] = {}

    def misses(self, query: SimulatedQuery) -> bool:
        """Tell whether some of its windows are not out yet."""
        return self._executions[query.name].next_end_s <= self._last_s

    def end(self) -> None:
        """Take what has come out until now."""
        for result in self._engine.results:
            self._done_s[result.query, result.end_s] = result.done_s

    def row(self, kind: MixedKind, queries: Sequence[SimulatedQuery]) -> dict[str, Any]:
        """Return its figures."""
        measured = self._latency_s if kind.latency else self._age_s
        seconds = [] if kind.silent else [s for query in queries for s in measured(query)]
        target_s = kind.options.get("target_s")
        began_s = [s for query in queries for s in self._executions[query.name].began_s]
        return {
            "kind": kind.name,
            "of_kind": len(queries),
            "measure": "latency" if kind.latency else "age",
            "mean_s": float(np.mean(seconds)) if seconds else None,
            "p99_s": float(np.quantile(seconds, 0.99)) if seconds else None,
            "source_s": None if kind.silent else kind.source_s,
            "target_s": target_s,
            "kept": kept_share(seconds, target_s),
            "batches": sum(self._first_s < at_s <= self._last_s for at_s in began_s),
        }

    def _latency_s(self, query: SimulatedQuery) -> list[float]:
        """Return the latencies of its windows; those that are not out count with their age."""
        now_s, found, end_s = self._engine.clock.now(), [], query.window.next_end(self._first_s)
        while end_s <= self._last_s:
            found.append(self._done_s.get((query.name, end_s), now_s) - end_s)
            end_s = query.window.next_end(end_s)
        return found

    def _age_s(self, query: SimulatedQuery) -> list[float]:
        return ages_of(self._executions[query.name].shown, self._first_s, self._last_s)
