"""What every policy decides for the same fleets, in virtual time."""

from collections.abc import Iterable, Iterator
from itertools import islice

import pytest

from slackwater import policies
from slackwater.core import Controller, Decision, VirtualClock
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.operators import OperatorEngine
from slackwater.engines.simulator.pipeline import PipelineOperator, PipelineQuery
from tests.golden.comparing import compare_lines
from tests.simulated import START_S, query

LINES = 120
SECONDS = 30.0

CHAIN = (
    PipelineOperator("read", 10e-6),
    PipelineOperator("filter", 3e-6, selectivity=1 / 3),
    PipelineOperator("join", 18e-6),
    PipelineOperator("window", 30e-6),
)


@pytest.mark.parametrize("name", policies.names())
def test_micro_batches(name: str) -> None:
    clock, policy = VirtualClock(START_S), policies.load(name, seed=3)
    fleet = [query(i, priority=1 + i % 3, max_wait_s=8.0, rate=100 + 150 * i) for i in range(7)]
    engine = MicroBatchEngine(clock, fleet, slots=2, gated=policy.gated)
    controller = Controller(engine, policy, engine, clock, remember=10_000)
    controller.run(lambda: clock.now() >= START_S + SECONDS)
    compare_lines(
        f"simulator/{name}.txt", told(controller.decisions) if policy.gated else begun(engine)
    )


@pytest.mark.parametrize("name", ["fcfs", "klink"])
def test_operators(name: str) -> None:
    clock, policy = VirtualClock(START_S), policies.load(name, seed=3)
    fleet = [PipelineQuery(name=f"q{i}", operators=CHAIN, phase_s=0.7 * i % 3) for i in range(14)]
    engine = OperatorEngine(clock, fleet, cores=2, seed=3)
    controller = Controller(engine, policy, engine, clock, remember=10_000)
    controller.run(lambda: clock.now() >= START_S + SECONDS)
    compare_lines(f"simulator/operators-{name}.txt", told(controller.decisions))


def told(decisions: Iterable[Decision]) -> Iterator[str]:
    for decision in islice(decisions, LINES):
        stage = decision.figures.stage if decision.figures is not None else ""
        at_s = decision.at_s - START_S
        yield f"{at_s:.6f} {decision.query} {stage or '-'} {decision.reason}"


def begun(engine: MicroBatchEngine) -> Iterator[str]:
    """Micro-batches that nobody decided about."""
    found = (
        f"{at_s - START_S:.6f} {name}" for at_s, name, phase in engine.log if phase == "running"
    )
    yield from islice(found, LINES)
