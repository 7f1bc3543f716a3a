"""The cycle: collect → decide → enforce."""

from collections import deque
from collections.abc import Callable
from itertools import islice

from slackwater.core.model import Decision, Schedule, Snapshot
from slackwater.core.protocols import Clock, Enforcer, EngineDriver, Policy

# Longest pause between two cycles when nothing happens. Arrivals wake the loop at once, and a
# schedule says when it must be asked again, so this is only a net below.
IDLE_PERIOD_S = 1.0

REMEMBERED = 1000  # decisions that ``explain`` can look back on
WAITING_KEPT = 50  # names at most that a remembered decision has of those who waited


class Controller:
    """Runs one policy over one engine.

    Parameters
    ----------
    driver, policy, enforcer, clock
        The four roles of :mod:`slackwater.core.protocols`.
    dry_run
        Decide and remember, but do not enforce.
    remember
        How many decisions ``explain`` can look back on.
    """

    def __init__(
        self,
        driver: EngineDriver,
        policy: Policy,
        enforcer: Enforcer,
        clock: Clock,
        *,
        dry_run: bool = False,
        remember: int = REMEMBERED,
    ) -> None:
        self.driver = driver
        self.policy = policy
        self.enforcer = enforcer
        self.clock = clock
        self.dry_run = dry_run
        self.cycles = 0
        self.decided = 0  # admissions so far, also those that are no longer remembered
        self.decisions: deque[Decision] = deque(maxlen=remember)

    def cycle(self) -> Schedule:
        """Run one turn of the loop."""
        snapshot = self.driver.collect(self.clock.now())
        schedule = self.policy.decide(snapshot)
        if not self.dry_run:
            self.enforcer.enforce(schedule)
        self._remember(snapshot, schedule)
        self.cycles += 1
        return schedule

    def run(self, stop: Callable[[], bool]) -> None:
        """Turn until ``stop()`` holds; between turns sleep until something happens."""
        while not stop():
            schedule = self.cycle()
            until_s = self.clock.now() + IDLE_PERIOD_S
            if schedule.wake_at_s is not None:
                until_s = min(until_s, schedule.wake_at_s)
            self.driver.wait(until_s)

    def _remember(self, snapshot: Snapshot, schedule: Schedule) -> None:
        if not schedule.admissions:
            return
        admitted = {admission.query for admission in schedule.admissions}
        # Of perhaps thousands that wait no more is looked at than is needed.
        found = (q for q in snapshot.waiting if q.spec.name in admitted)
        states = {query.spec.name: query for query in islice(found, len(admitted))}
        first = islice(snapshot.waiting, WAITING_KEPT + len(admitted))
        left = [q.spec.name for q in first if q.spec.name not in admitted][:WAITING_KEPT]
        running = tuple(q.name for q in snapshot.running)
        # A policy may make one up; the enforcer passes it over as well.
        known = [admission for admission in schedule.admissions if admission.query in states]
        self.decided += len(known)
        for admission in known[-(self.decisions.maxlen or 0) :]:
            beside = (name for name in states if name != admission.query)
            self.decisions.append(
                Decision(
                    at_s=snapshot.now_s,
                    query=admission.query,
                    reason=admission.reason,
                    waited_s=states[admission.query].waited_s(snapshot.now_s),
                    waiting=(*islice(beside, WAITING_KEPT), *left)[:WAITING_KEPT],
                    running=running,
                    enforced=not self.dry_run,
                    figures=admission.figures,
                )
            )
