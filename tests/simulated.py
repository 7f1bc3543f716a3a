"""Small fleets in the simulator."""

from collections.abc import Callable

from slackwater import policies
from slackwater.core import Controller, VirtualClock
from slackwater.engines.simulator.microbatch import MicroBatchEngine
from slackwater.engines.simulator.query import BatchCosts, SimulatedQuery
from slackwater.traffic import Traffic

START_S = 1_700_000_000.0


def query(number: int, **options: object) -> SimulatedQuery:
    """One of a fleet: windows of 3 s, each query's at times of its own."""
    traffic = Traffic(start_s=START_S, rate=str(options.pop("rate", 200)), seed=number)
    usual = {"phase_s": 0.37 * number % 3, "costs": BatchCosts(poll_s=0.05)}
    return SimulatedQuery(name=f"q{number}", traffic=traffic, **(usual | options))  # type: ignore[arg-type]


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
