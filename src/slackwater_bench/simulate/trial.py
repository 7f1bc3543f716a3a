"""One fleet under one policy, on the engine of operators."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater import policies
from slackwater.core.clock import Timer, VirtualClock
from slackwater.core.controller import Controller
from slackwater.core.protocols import Policy
from slackwater.engines.simulator.cluster import SimulatedCluster
from slackwater.engines.simulator.jvm import Heap, WarmUp
from slackwater.engines.simulator.operators import Execution, OperatorEngine, Usage
from slackwater.engines.simulator.pipeline import PipelineQuery
from slackwater.engines.simulator.prediction import START_S
from slackwater.engines.simulator.query import Result
from slackwater.engines.simulator.sweeps import first_arrivals
from slackwater_bench.simulate.fleets import fleet

DEFAULT = "default"  # the engine's own scheduling: every operator is a thread


@dataclass(frozen=True, slots=True)
class SimulatedTrial:
    """What is simulated."""

    policy: str
    workload: str = "ysb"
    queries: int = 80
    delays: str = "uniform:0:300ms"
    arrivals: str = "even"  # or in bursts
    load: float = 1.0  # factor on every rate
    uneven: float = 1.0  # how much costlier the second half of one query in ten is
    seconds: float = 1200.0  # of virtual time
    warmup_s: float = 120.0  # of it, not counted
    cores: int = 24  # of each node; it has as much memory a core as the published one
    nodes: int = 1
    forwarding: bool = True  # of watermarks and costs between nodes
    cycle_s: float = 0.12  # r
    parameters: dict[str, Any] = field(default_factory=dict)  # of the policy
    cold: bool = True  # the engine has just started and its code is not compiled yet
    seed: int = 1


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    latencies_s: NDArray[np.float64]
    slowdown: float | None  # mean latency ÷ that of an engine with nothing else to do
    usage: Sequence[Sequence[Usage]]  # by node, without the warm-up
    took_s: float  # real time

    def row(self, trial: SimulatedTrial) -> dict[str, Any]:
        """Return the figures as they go to JSON."""
        seen = self.latencies_s
        shown = {f"p{share}_s": quantile(seen, share / 100) for share in (50, 90, 99)}
        flat = [use for node in self.usage for use in node]
        return asdict(trial) | {
            "windows": len(seen),
            "mean_s": float(seen.mean()) if len(seen) else None,
            **shown,
            "slowdown": self.slowdown,
            "events_per_s": float(np.mean([use.events for use in flat])) * len(self.usage),
            "memory_bytes": float(np.mean([use.memory_bytes for use in flat])),
            "collecting": float(np.mean([use.collecting for use in flat])),
            "busy_cores": float(np.mean([use.busy_cores for use in flat])) * len(self.usage),
            "took_s": self.took_s,
        }


def quantile(values: NDArray[np.float64], share: float) -> float | None:
    return float(np.quantile(values, share)) if len(values) else None


def run(trial: SimulatedTrial) -> Outcome:
    """Simulate it."""
    queries = fleet(
        trial.workload,
        trial.queries,
        delays=trial.delays,
        arrivals=trial.arrivals,
        load=trial.load,
        uneven=trial.uneven,
        seed=trial.seed,
    )
    return run_fleet(trial, queries)


def run_fleet(
    trial: SimulatedTrial,
    queries: Sequence[PipelineQuery],
    execution: Execution | None = None,
) -> Outcome:
    """Simulate these queries as the trial says."""
    timer, clock = Timer(), VirtualClock(START_S)
    if execution is None:
        execution = "threads" if trial.policy == DEFAULT else "cores"
    options = {
        "cores": trial.cores,
        "cycle_s": trial.cycle_s,
        "execution": execution,
        "heap": Heap.of(trial.cores),
        "warm_up": WarmUp() if trial.cold else None,
    }
    until_s, counted_s = START_S + trial.seconds, START_S + trial.warmup_s
    results: Sequence[Result]
    if trial.nodes == 1:
        engine = OperatorEngine(clock, queries, seed=trial.seed, **options)  # type: ignore[arg-type]
        Controller(engine, _policy(trial), engine, clock, remember=1).run(
            lambda: clock.now() >= until_s
        )
        results, nodes = engine.results, [engine]
    else:
        many = [_policy(replace(trial, seed=trial.seed + n)) for n in range(trial.nodes)]
        cluster = SimulatedCluster(
            clock, queries, many, forwarding=trial.forwarding, seed=trial.seed, **options
        )
        cluster.run(until_s)
        results, nodes = cluster.results, cluster.nodes
    # Windows that are not out yet count with their age: else those who finish few look good.
    late = [age_s for node in nodes for age_s in node.pending_s() if until_s - age_s >= counted_s]
    latencies = np.array([r.latency_s for r in results if r.end_s >= counted_s] + late)
    usage = [[use for use in node.usage if use.at_s >= counted_s] for node in nodes]
    took_s = timer.elapsed_s
    slowdown = float(latencies.mean()) / _ideal_s(queries[0]) if len(latencies) else None
    return Outcome(latencies, slowdown, usage, took_s)


def _policy(trial: SimulatedTrial) -> Policy:
    name = "spark" if trial.policy == DEFAULT else trial.policy
    return policies.load(name, seed=trial.seed, **trial.parameters)


def _ideal_s(query: PipelineQuery) -> float:
    """Return mean latency if the watermark met no queue: delay, arrival, an event's work."""
    draws = first_arrivals(query.rate, query.delays).draw(np.random.default_rng(0), 3000)
    arrival_s = float(draws.reshape(-1, query.streams).max(axis=1).mean())
    return query.delay_s + arrival_s + float(query.work_s.sum())
