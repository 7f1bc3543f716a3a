"""A fleet's controller: started, asked, switched off and on."""

import logging
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from slackwater import policies
from slackwater.engines.spark.control.process import ControllerProcess
from slackwater.engines.spark.control.service import ControllerSettings, ControllerThread
from slackwater.ipc.client import Link, ask
from slackwater.ipc.questions import (
    AskCost,
    AskDecisions,
    AskStatus,
    Control,
    Controlled,
    Cost,
    QueryEntry,
    Status,
)

log = logging.getLogger("slackwater.fleet")

START_S = 20.0

Known = dict[str, QueryEntry]  # by query


class FleetControl:
    """The controller of one fleet, in a process of its own or on a thread."""

    def __init__(self, settings: ControllerSettings, kind: Literal["process", "thread"]) -> None:
        self._settings = settings
        self._parameters = settings.parameters  # as its user gave them, whatever the policy
        self._kind = kind
        self._running = self._start()

    @property
    def pid(self) -> int | None:
        """Of its process; ``None`` when it is a thread."""
        return self._running.pid if isinstance(self._running, ControllerProcess) else None

    def await_held(self, link: Link) -> None:
        """Wait until it answers, but not for ever."""
        if not link.wait_held(START_S):
            log.warning("the controller did not come up; queries run as plain Spark until it does")

    def off(self) -> None:
        ask(self._socket, Control(action="off"), Controlled)

    def on(self, link: Link) -> None:
        """Have it hold queries; start one that had given up."""
        if isinstance(self._running, ControllerProcess) and self._running.given_up:
            self._running = self._start()
            self.await_held(link)
        ask(self._socket, Control(action="on"), Controlled)

    def keep_policy(self, policy: str) -> None:
        """Have one that is started later use this policy too."""
        kept = policies.fitting(policy, self._parameters)
        self._settings = replace(self._settings, policy=policy, parameters=kept)
        if isinstance(self._running, ControllerProcess):
            self._running.settings = self._settings

    def cpu_s(self) -> float:
        """Return the CPU time that it has used so far."""
        return ask(self._socket, AskCost(), Cost).cpu_s

    def known(self) -> tuple[Known, bool]:
        """Return what it knows of each query, and whether gates are open."""
        answer = ask(self._socket, AskStatus(), Status, timeout_s=1.0)
        return {entry.spec.name: entry for entry in answer.queries}, answer.open

    def decisions(self, last: int, query: str | None) -> list[dict[str, Any]]:
        """Return the last decisions, newest first, as JSON has them."""
        return ask(self._socket, AskDecisions(last=last, query=query), list[dict[str, Any]])

    def close(self) -> None:
        self._running.close()

    @property
    def _socket(self) -> Path:
        return Path(self._settings.socket)

    def _start(self) -> ControllerProcess | ControllerThread:
        return (ControllerProcess if self._kind == "process" else ControllerThread)(self._settings)
