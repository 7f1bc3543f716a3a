"""What the model of micro-batches says of a fleet."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from slackwater import policies
from slackwater.core.clock import VirtualClock
from slackwater.core.controller import Controller
from slackwater.core.errors import UsageError
from slackwater.core.model import default_slots
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.query import BatchCosts, Result, SimulatedQuery

START_S = 1_700_000_000.0  # any moment will do


@dataclass(frozen=True, slots=True)
class Machine:
    """The machine that a fleet runs on."""

    cores: float
    slots: int | None = None  # None: 1.5 a core
    driver_cores: float | None = None  # of a driver on a machine of its own

    @property
    def admitted(self) -> int:
        return self.slots or default_slots(self.cores)


@dataclass(frozen=True, slots=True)
class Calibration:
    """What is known of a machine and a workload; ``plan`` reads it."""

    costs: BatchCosts = field(default_factory=BatchCosts)
    cores: int = 1  # of the machine that was measured
    background: float = 0.0  # cores that are busy however many batches run

    def machine(
        self,
        cores: float | None = None,
        slots: int | None = None,
        drivers: int = 1,
        driver_cores: float | None = None,
    ) -> Machine:
        """Return one driver's part of such a machine, perhaps with another number of cores."""
        whole = self.cores if cores is None else cores
        free = max(0.1, whole - self.background)
        admitted = slots or Machine(whole).admitted
        return Machine(free / drivers, max(1, admitted // drivers), driver_cores)


def load_calibration(file: Path) -> Calibration:
    """Read what ``slackwater simulate calibrate --json`` wrote."""
    try:
        raw = json.loads(file.read_text())["calibration"]
        return Calibration(BatchCosts(**raw["costs"]), raw["cores"], raw["background"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is not a result of slackwater simulate calibrate") from error


# YSB with 8 queries, 1,000 events/s each, under klink and spark-trigger, on two cores; fitted by
# `slackwater simulate calibrate`, which was 6 % off on the runs that it had not seen.
MEASURED = Calibration(
    BatchCosts(
        fixed_s=0.108,
        empty_s=0.075,
        per_row_s=2.4e-5,
        waiting_s=0.03,
        beside=0.49,
        spread=0.21,
        driver=0.62,
    ),
    cores=2,
    background=0.09,
)


@dataclass(frozen=True)
class Prediction:
    """Results of windows that end within the time that counts."""

    results: list[Result]
    with_rows_s: NDArray[np.float64]  # durations of batches
    without_rows_s: NDArray[np.float64]
    busy_s: float  # of all cores together, in all
    latencies_s: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        found = np.array([result.latency_s for result in self.results])
        object.__setattr__(self, "latencies_s", found)

    @property
    def batches(self) -> int:
        return len(self.with_rows_s) + len(self.without_rows_s)

    @property
    def mean_s(self) -> float:
        return float(self.latencies_s.mean()) if len(self.latencies_s) else float("inf")

    @property
    def p99_s(self) -> float:
        return float(np.quantile(self.latencies_s, 0.99)) if len(self.latencies_s) else float("inf")


def predict(
    queries: Sequence[SimulatedQuery],
    policy: str,
    machine: Machine,
    *,
    warmup_s: float,
    seconds: float,
    parameters: dict[str, Any] | None = None,
    patience_s: float = 60.0,
) -> Prediction:
    """Simulate until every window of the counted time is out, or for so much longer.

    Those that are not out then count with their age.
    """
    start_s = queries[0].traffic.start_s
    clock, chosen = VirtualClock(start_s), policies.load(policy, **(parameters or {}))
    engine = MicroBatchEngine(
        clock,
        queries,
        cores=machine.cores,
        driver_cores=machine.driver_cores,
        slots=machine.admitted,
        gated=chosen.gated,
    )
    first_s, last_s = start_s + warmup_s, start_s + warmup_s + seconds
    controller = Controller(engine, chosen, engine, clock, remember=1)
    controller.run(lambda: clock.now() >= last_s + 1.0)
    ends = {(q.name, end_s) for q in queries for end_s in _ends(q, first_s, last_s)}
    limit_s = last_s + patience_s + max(query.delay_s for query in queries)
    while len(counted := _counted(engine.results, first_s, last_s)) < len(ends):
        if clock.now() > limit_s:
            break
        until_s = clock.now() + 1.0
        controller.run(lambda until_s=until_s: clock.now() >= until_s)  # type: ignore[misc]
    missing = ends - {(result.query, result.end_s) for result in counted}
    counted += [Result(name, end_s, clock.now()) for name, end_s in sorted(missing)]
    durations = engine.durations()
    return Prediction(
        counted,
        np.array([seconds for rows, seconds in durations if rows]),
        np.array([seconds for rows, seconds in durations if not rows]),
        engine.cores.busy_s,
    )


def _counted(results: Sequence[Result], first_s: float, last_s: float) -> list[Result]:
    return [result for result in results if first_s < result.end_s <= last_s]


def _ends(query: SimulatedQuery, first_s: float, last_s: float) -> list[float]:
    found, end_s = [], query.window.next_end(first_s)
    while end_s <= last_s:
        found.append(end_s)
        end_s = query.window.next_end(end_s)
    return found
