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
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from slackwater import policies
from slackwater.common.logs import configure
from slackwater.common.procfs import process_cpu_s, thread_cpu_s
from slackwater.common.subprocesses import collect_seldom
from slackwater.core.clock import RealClock
from slackwater.core.controller import Controller
from slackwater.core.errors import SlackwaterError
from slackwater.core.model import Figures
from slackwater.engines.spark.control.driver import ControlServer
from slackwater.ipc.wire import Message
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


class ControllerService:
    """A controller with its server, ready to run."""

    def __init__(self, settings: ControllerSettings, cpu_s: Callable[[], float]) -> None:
        self.settings = settings
        self._cpu_s = cpu_s
        self._policy_name = settings.policy
        self._lookout: Policy | None = None  # looks ahead where the policy itself does not
        policy = policies.load(settings.policy, **settings.parameters)
        clock = RealClock()
        self._began_s = clock.now()
        self.server = ControlServer(
            Path(settings.socket),
            clock,
            settings.slots,
            hold_nothing=settings.dry_run or not policy.gated,
            answers={
                "decisions": self._decisions,
                "control": self._control,
                "cost": self._cost,
                "watch": self._watch,
            },
        )
        self.controller = Controller(
            self.server, policy, self.server, clock, dry_run=settings.dry_run
        )

    def run(self, stop: Callable[[], bool]) -> None:
        try:
            self.controller.run(stop)
        finally:
            self.server.close()

    # -- questions ------------------------------------------------------------------------------

    def _decisions(self, message: Message) -> Any:
        last = int(message.get("last", 20))
        wanted = message.get("query")
        newest_first = reversed(self.controller.decisions)
        found = (asdict(d) for d in newest_first if wanted in (None, d.query))
        return list(islice(found, last))

    def _control(self, message: Message) -> Any:
        """``off`` opens every gate, ``on`` closes them again, ``policy`` changes who decides;
        ``pause`` and ``resume`` are the fleet's to do."""
        action = message.get("action")
        if action not in ACTIONS:
            return {"error": f"unknown action {action!r}; known: {', '.join(ACTIONS)}"}
        if action == "policy":
            try:
                self.controller.policy = policies.load(str(message.get("policy")))
            except SlackwaterError as error:
                return {"error": str(error)}
            self._policy_name = str(message["policy"])
        if action in ("on", "off", "policy"):
            gated = getattr(self.controller.policy, "gated", True)
            self.server.hold_nothing = action == "off" or self.controller.dry_run or not gated
        told: Message = {
            key: message[key] for key in ("action", "query", "policy") if key in message
        }
        self.server.tell(told)
        return {"open": self.server.hold_nothing}

    def _watch(self, message: Message) -> Any:
        """Everything now, and what happened since the numbers that the asker knows."""
        fresh = self.controller.decided - int(message.get("decided", 0))
        newest = min(max(0, fresh), len(self.controller.decisions), MOST_AT_ONCE)
        kept = islice(reversed(self.controller.decisions), newest)
        return {
            **self.server.overview(),
            "epoch": self._began_s,
            "policy": self._policy_name,
            "dry_run": self.controller.dry_run,
            **self._cost(message),
            "outlook": {name: asdict(each) for name, each in self._outlook().items()},
            "decided": self.controller.decided,
            "decisions": [asdict(decision) for decision in kept][::-1],
            "happened": self.server.recent.last,
            "events": self.server.recent.since(int(message.get("happened", 0))),
        }

    def _outlook(self) -> dict[str, Figures]:
        """Of the policy; of one that does not look ahead, as Klink would see it."""
        now_s = self.server.clock.now()
        policy = self.controller.policy
        found = policy.outlook(now_s) if isinstance(policy, Policy) else {}
        if found:
            return found
        if self._lookout is None:
            self._lookout = policies.load("klink")
        self._lookout.decide(self.server.collect(now_s))
        return self._lookout.outlook(now_s)

    def _cost(self, _: Message) -> Any:
        return {"cpu_s": self._cpu_s(), "cycles": self.controller.cycles}


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

    next_look_s = 0.0

    def driver_is_gone() -> bool:
        nonlocal next_look_s
        if time.monotonic() < next_look_s:
            return False
        next_look_s = time.monotonic() + LOOK_PERIOD_S
        return bool(select.select([sys.stdin], [], [], 0)[0])

    collect_seldom()
    service.run(driver_is_gone)


if __name__ == "__main__":
    main()
