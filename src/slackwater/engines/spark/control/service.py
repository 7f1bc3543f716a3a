"""The controller of Spark queries: as a process of its own, or as a thread.

``python -m slackwater.engines.spark.control.service`` reads its settings as one JSON line from
standard input and runs until that is closed, so that it never outlives the driver that started it.
It needs no Spark: nothing here imports it.
"""

import json
import logging
import select
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from slackwater import policies
from slackwater.common.logs import configure
from slackwater.common.procfs import busy_s, process_cpu_s, thread_cpu_s, usable_cpus
from slackwater.common.subprocesses import collect_seldom
from slackwater.core.clock import Deadline, RealClock
from slackwater.core.controller import Controller
from slackwater.core.errors import SlackwaterError
from slackwater.core.model import Figures, Snapshot
from slackwater.engines.spark.control.driver import GateDriver, unknown_question
from slackwater.engines.spark.control.guard import Guard
from slackwater.engines.spark.control.view import entry, view
from slackwater.engines.spark.control.waiting import why_held
from slackwater.ipc.messages import Command
from slackwater.ipc.questions import (
    Ask,
    AskCost,
    AskDecisions,
    AskStatus,
    AskWatch,
    Control,
    Controlled,
    Cost,
    Decisions,
    Failure,
    Question,
    Status,
    Watched,
)
from slackwater.policies import Policy

LOOK_PERIOD_S = 0.5  # between two looks whether the driver is still there
ACTIONS = ("on", "off", "policy", "pause", "resume")
MOST_AT_ONCE = 300  # decisions that one who begins to watch is told


@dataclass(frozen=True, slots=True)
class ControllerSettings:
    """What a controller is told when it starts."""

    socket: str
    policy: str = "klink"
    slots: int = 1
    dry_run: bool = False
    parameters: dict[str, Any] = field(default_factory=dict)  # for the policy's constructor
    guard: bool = True  # whether it looks out for harm that holding does


class ControllerService:
    """A controller with its driver, ready to run."""

    def __init__(self, settings: ControllerSettings, cpu_s: Callable[[], float]) -> None:
        self.settings = settings
        self._cpu_s = cpu_s
        self._policy_name = settings.policy
        self._lookout: Policy | None = None  # looks ahead where the policy itself does not
        policy = policies.load(settings.policy, **settings.parameters)
        clock, cpus = RealClock(), usable_cpus()
        self._began_s = clock.now()
        self.driver = GateDriver(
            Path(settings.socket),
            clock,
            settings.slots,
            hold_nothing=settings.dry_run or not policy.gated,
            answers=self._answer,
            guard=Guard(len(cpus), partial(busy_s, cpus)) if settings.guard else None,
            held_up=self._held_up,
        )
        self.controller = Controller(
            self.driver, policy, self.driver, clock, dry_run=settings.dry_run
        )

    def _held_up(self, snapshot: Snapshot) -> dict[str, float]:
        """Return whom the policy of this moment would let in if there were slots, since when."""
        policy = self.controller.policy
        return policy.held_up(snapshot) if isinstance(policy, Policy) else {}

    def run(self, stop: Callable[[], bool]) -> None:
        """Decide until ``stop()``."""
        try:
            self.controller.run(stop)
        finally:
            self.driver.close()

    # -- questions ------------------------------------------------------------------------------

    def _answer(self, question: Question | Ask) -> object:
        match question:
            case AskStatus():
                return self._status()
            case AskDecisions():
                return self._decisions(question)
            case Control():
                return self._control(question)
            case AskCost():
                return self._cost()
            case AskWatch():
                return self._watch(question)
        return unknown_question(question)

    def _status(self) -> Status:
        """Return all that is known of each query."""
        driver, now_s, waits = self.driver, self.driver.clock.now(), self._why_held()
        return Status(
            now_s=now_s,
            slots=driver.slots,
            open=driver.hold_nothing,
            memory=driver.store.memory,
            queries=tuple(
                entry(query.state, now_s, query.promises, waits.get(name))
                for name, query in driver.store.queries.items()
            ),
        )

    def _why_held(self) -> dict[str, str]:
        """Say of each query that is held why it is."""
        driver, policy = self.driver, self.controller.policy
        now_s = driver.clock.now()
        found = driver.guard.why_let_through(now_s) if driver.guard else {}
        waiting = [query.state for query in driver.store.waiting if query.state.name not in found]
        if not waiting:
            return found
        prospects = policy.prospects(now_s) if isinstance(policy, Policy) else {}
        return found | why_held(waiting, prospects, driver.collect(now_s).free_slots, now_s)

    def _decisions(self, asked: AskDecisions) -> Decisions:
        newest_first = reversed(self.controller.decisions)
        found = (d for d in newest_first if asked.query in (None, d.query))
        return tuple(islice(found, max(0, asked.last)))

    def _control(self, asked: Control) -> Controlled | Failure:
        """Do what was told, or hand it on.

        ``off`` opens every gate, ``on`` closes them again, ``policy`` changes who decides;
        ``pause`` and ``resume`` are the fleet's to do.
        """
        action = asked.action
        if action not in ACTIONS:
            return Failure(f"unknown action {action!r}; known: {', '.join(ACTIONS)}")
        if action == "policy":
            name = str(asked.policy or None)
            try:
                kept = policies.fitting(name, self.settings.parameters)
                self.controller.policy = policies.load(name, **kept)
            except SlackwaterError as error:
                return Failure(str(error))
            except Exception as error:  # its constructor's: no reason to end
                return Failure(f"policy {name}: {type(error).__name__}: {error}")
            self._policy_name = name
        if action in ("on", "off", "policy"):
            gated = getattr(self.controller.policy, "gated", True)
            self.driver.hold_nothing = action == "off" or self.controller.dry_run or not gated
        self.driver.tell(Command(action, asked.query, asked.policy))
        return Controlled(self.driver.hold_nothing)

    def _watch(self, asked: AskWatch) -> Watched:
        """Return everything now, and what happened since the numbers that the asker knows."""
        fresh = self.controller.decided - asked.decided
        newest = min(max(0, fresh), len(self.controller.decisions), MOST_AT_ONCE)
        kept = tuple(islice(reversed(self.controller.decisions), newest))
        driver, store, cost = self.driver, self.driver.store, self._cost()
        guard, now_s, waits = driver.guard, driver.clock.now(), self._why_held()
        return Watched(
            now_s=now_s,
            slots=driver.slots,
            open=driver.hold_nothing,
            opened=store.opened,
            extra_slots=guard.extra if guard else 0,
            unheld=guard is not None and guard.is_open(now_s),
            let_through=len(guard.why_let_through(now_s)) if guard else 0,
            asked=store.inputs.asked,
            asking_s=store.inputs.asking_s,
            memory=store.memory,
            queries=tuple(
                view(query.state, query.stage, query.promises, waits.get(name))
                for name, query in store.queries.items()
            ),
            app_name=store.notes.app_name,
            gate=store.notes.gate,
            notes=store.notes.notes,
            epoch=self._began_s,
            policy=self._policy_name,
            dry_run=self.controller.dry_run,
            cpu_s=cost.cpu_s,
            cycles=cost.cycles,
            outlook=self._outlook(),
            decided=self.controller.decided,
            decisions=kept[::-1],
            happened=store.recent.last,
            events=tuple(store.recent.since(asked.happened)),
        )

    def _outlook(self) -> dict[str, Figures]:
        """Return what the policy expects; of one that does not look ahead, what Klink would."""
        now_s = self.driver.clock.now()
        policy = self.controller.policy
        found = policy.outlook(now_s) if isinstance(policy, Policy) else {}
        if found:
            return found
        if self._lookout is None:
            self._lookout = policies.load("klink")
        self._lookout.decide(self.driver.collect(now_s))
        return self._lookout.outlook(now_s)

    def _cost(self) -> Cost:
        return Cost(self._cpu_s(), self.controller.cycles)


class ControllerThread:
    """The controller inside the driver's Python process."""

    def __init__(self, settings: ControllerSettings) -> None:
        self._stop = threading.Event()
        self._service = ControllerService(settings, lambda: thread_cpu_s(self._thread.native_id))
        self._thread = threading.Thread(
            target=self._service.run, args=(self._stop.is_set,), name="slackwater-controller"
        )
        self._thread.daemon = True
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join(timeout=5)


def main() -> None:
    usual = logging.StreamHandler()
    usual.setFormatter(logging.Formatter("slackwater controller: %(message)s"))
    configure(usual)
    settings = ControllerSettings(**json.loads(sys.stdin.readline()))
    service = ControllerService(settings, process_cpu_s)

    next_look = Deadline(0.0)

    def driver_is_gone() -> bool:
        nonlocal next_look
        if not next_look.passed:
            return False
        next_look = Deadline(LOOK_PERIOD_S)
        return bool(select.select([sys.stdin], [], [], 0)[0])

    collect_seldom()
    service.run(driver_is_gone)


if __name__ == "__main__":
    main()
