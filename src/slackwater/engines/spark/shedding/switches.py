"""What people switch while a fleet runs: everything, one query, the policy."""

import logging
import threading
from pathlib import Path

from slackwater.common.exceptions import first_line
from slackwater.core.errors import UsageError
from slackwater.engines.spark.control.client import FleetControl
from slackwater.engines.spark.queries.agent import Agent
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.shedding.fleet import FleetQuality
from slackwater.engines.spark.shedding.loop import QualityLoop
from slackwater.ipc.client import ask
from slackwater.ipc.messages import Command
from slackwater.ipc.questions import Control, Controlled

log = logging.getLogger("slackwater.fleet")


class FleetSwitches:
    """The part of :class:`~slackwater.engines.spark.fleet.Fleet` that people switch."""

    name: str
    policy: str
    gate_kind: str
    socket: Path
    _gated: bool
    _closing: threading.Event
    _agent: Agent
    _control: FleetControl
    _launcher: Launcher
    _quality: FleetQuality
    _registry: Registry

    def off(self) -> None:
        """Open every gate: queries go on as plain Spark, and nothing is shed."""
        self._quality.loop.enabled = False
        self._control.off()

    def on(self) -> None:
        """Hold queries again; also starts a controller that had given up."""
        self._quality.loop.enabled = True
        self._control.on(self._agent.link)

    def switch(self, policy: str) -> None:
        """Set another policy. Queries that were started under one that holds nobody stay free."""
        ask(self.socket, Control(action="policy", policy=policy), Controlled)

    def pause(self, name: str) -> None:
        """Stop a query until :meth:`resume`; it goes on from its checkpoint then."""
        self._launcher.pause(name)

    def resume(self, name: str) -> None:
        """Let a query go on that was paused."""
        self._quality.loop.resumed(name)
        self._launcher.resume(name)

    def stop_query(self, name: str) -> None:
        """Stop one query and forget it; started again, it goes on from its checkpoint."""
        self._launcher.stop_and_forget(name)

    def forget(self, name: str) -> None:
        """Take a query that has ended off the list, so that it can be started again."""
        self._launcher.forget(name)

    def release(self, name: str) -> None:
        """Take a query out of the fleet; it goes on as plain Spark."""
        self._launcher.release(name)

    def report_failure(self, name: str, error: str) -> None:
        """Keep a query that could not even be built in the status, with what went wrong."""
        self._registry.fail(name, first_line(error))

    @property
    def quality(self) -> QualityLoop:
        """What sheds its queries, and knows what they cost."""
        return self._quality.loop

    def _refuse_stopped(self) -> None:
        if self._closing.is_set():
            raise UsageError(f"the fleet {self.name} has been stopped: make another Fleet")

    def _refuse_ungated(self, name: str | None) -> None:
        known = self._registry.get(name or "")
        if self.gate_kind == "source" and self._gated and (known is None or known.gate != "source"):
            raise UsageError("the source gate needs the DataFrame: fleet.gate(df, name) first")

    def _make_room(self, name: str | None) -> None:
        """Take a query that has ended off the list: Spark starts another under its name, too."""
        known = self._registry.get(name or "")
        if known is not None and known.ended and not known.unstarted:
            self.forget(known.name)

    def _on_command(self, command: Command) -> None:
        """Start a thread that obeys: stopping a query waits for its batch, grants must not."""
        threading.Thread(target=self._obey, args=(command,), daemon=True).start()

    def _obey(self, command: Command) -> None:
        action = command.action
        try:
            if action == "pause":
                self.pause(str(command.query))
            elif action == "resume":
                self.resume(str(command.query))
            elif action == "policy":
                self.policy = str(command.policy)
                self._control.keep_policy(self.policy)
            else:
                self._quality.loop.enabled = action == "on"
        except Exception as error:
            log.error("%s: %s", action, error)
