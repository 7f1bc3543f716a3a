"""Starts queries again that failed through no fault of their own."""

import logging
import queue
import threading

from slackwater.core.clock import Deadline
from slackwater.engines.spark.queries.launcher import START_LIMIT_S, Launcher
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry

log = logging.getLogger("slackwater.fleet")

PAUSE_S = 1.0  # before the first restart, twice as long before the second, …


class Restarter:
    """A thread that starts queries again that lost a Python process."""

    def __init__(self, registry: Registry, launcher: Launcher) -> None:
        self._registry = registry
        self._launcher = launcher
        self._closing = threading.Event()
        self._due: queue.Queue[QueryRecord | None] = queue.Queue()
        registry.subscribe(self._on_change)
        self._thread = threading.Thread(target=self._run, name="slackwater-restarts", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Start nothing any more."""
        self._closing.set()
        self._due.put(None)
        self._thread.join(timeout=START_LIMIT_S)

    def _on_change(self, old: QueryRecord | None, new: QueryRecord) -> None:
        if old is None or old.state is new.state:
            return
        if new.state is State.RESTARTING:
            self._due.put(new)
        elif new.state is State.FAILED:
            log.error("%s failed, the others go on: %s", new.name, new.error)

    def _run(self) -> None:
        while (failed := self._due.get()) is not None:
            log.warning(
                "%s lost a Python process (%s); starting it again", failed.name, failed.error
            )
            record = self._registry.update(
                failed.name,
                when=(State.RESTARTING,),
                restarts=failed.restarts + 1,
                attempts=failed.attempts + 1,
            )
            if record is None or self._closing.wait(PAUSE_S * record.attempts):
                continue
            try:
                self._launcher.relaunch(record)
                self._await_outcome(record.name)
            except Exception as error:
                log.error("%s could not be started again: %s", record.name, error)

    def _await_outcome(self, name: str) -> None:
        """Wait until it has begun or failed: the machine was too busy for several before."""
        limit = Deadline(START_LIMIT_S)
        while not limit.passed and not self._closing.is_set():
            record = self._registry.get(name)
            if record is None or record.state is not State.STARTING:
                return
            self._registry.wait_change(0.05)
