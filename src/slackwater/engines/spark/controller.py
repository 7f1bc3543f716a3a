"""The controller of Spark queries: as a process of its own, or as a thread.

``python -m slackwater.engines.spark.controller`` reads its settings as one JSON line from standard
input and runs until that is closed, so that it never outlives the driver that started it. It needs
no Spark: nothing here imports it.
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
from slackwater.core.clock import RealClock
from slackwater.core.controller import Controller
from slackwater.core.cpu import process_cpu_s, thread_cpu_s
from slackwater.core.garbage import collect_seldom
from slackwater.engines.spark.server import ControlServer
from slackwater.engines.spark.wire import Message

LOOK_PERIOD_S = 0.5  # between two looks whether the driver is still there


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
        policy = policies.load(settings.policy, **settings.parameters)
        clock = RealClock()
        self.server = ControlServer(
            Path(settings.socket),
            clock,
            settings.slots,
            hold_nothing=settings.dry_run or not policy.gated,
            answers={"decisions": self._decisions, "control": self._control, "cost": self._cost},
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
        """``off`` opens every gate, ``on`` closes them again."""
        action = message.get("action")
        if action not in ("on", "off"):
            return {"error": f"unknown action {action!r}; known: on, off"}
        held_by_policy = getattr(self.controller.policy, "gated", True)
        self.server.hold_nothing = action == "off" or self.controller.dry_run or not held_by_policy
        return {"open": self.server.hold_nothing}

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
    logging.basicConfig(format="slackwater controller: %(message)s", level=logging.WARNING)
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
