"""Small fleets in the simulator, with the engine and the controller that ran them."""

from collections.abc import Callable

from slackwater import policies
from slackwater.core import Controller, VirtualClock
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.query import SimulatedQuery
from slackwater.testing import START_S
from slackwater.testing import simulated_query as query

__all__ = ["START_S", "query", "simulate"]


def simulate(
    policy: str,
    queries: list[SimulatedQuery],
    seconds: float,
    *,
    slots: int = 2,
    dry_run: bool = False,
    until: Callable[[MicroBatchEngine], bool] = lambda engine: False,
) -> tuple[MicroBatchEngine, Controller]:
    """Run a fleet under a policy for so many virtual seconds."""
    clock, chosen = VirtualClock(START_S), policies.load(policy, seed=3)
    engine = MicroBatchEngine(clock, queries, slots=slots, gated=chosen.gated)
    controller = Controller(engine, chosen, engine, clock, dry_run=dry_run, remember=5)
    controller.run(lambda: clock.now() >= START_S + seconds or until(engine))
    return engine, controller
