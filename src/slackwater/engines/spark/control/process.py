"""Starts the controller process and keeps it running; gives up when it keeps crashing."""

import contextlib
import json
import logging
import subprocess
import sys
import threading
from dataclasses import asdict

from slackwater.common.subprocesses import child_environment
from slackwater.core.clock import Deadline
from slackwater.engines.spark.control.service import ControllerSettings

log = logging.getLogger("slackwater.fleet")

CRASH_WINDOW_S = 30.0  # two crashes within this time and the controller stays off


class ControllerProcess:
    """The controller as a child process."""

    def __init__(self, settings: ControllerSettings) -> None:
        self.settings = settings  # for the next start as well
        self._closed = threading.Event()
        self._lock = threading.Lock()  # between closing and starting again
        self._crashes: list[Deadline] = []  # until when each counts
        self.given_up = False
        self._process = self._spawn()
        self._thread = threading.Thread(target=self._watch, name="slackwater-supervisor")
        self._thread.daemon = True
        self._thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it by closing its standard input; kill one that hangs."""
        with self._lock:
            self._closed.set()
        self._end(self._process)
        self._thread.join(timeout=5)

    def _spawn(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "slackwater.engines.spark.control.service"],
            stdin=subprocess.PIPE,
            text=True,
            env=child_environment(),
            start_new_session=True,  # Ctrl-C at the terminal is the driver's to handle
        )
        assert process.stdin is not None
        process.stdin.write(json.dumps(asdict(self.settings)) + "\n")
        process.stdin.flush()
        return process

    def _watch(self) -> None:
        while True:
            status = self._process.wait()
            if self._closed.is_set():
                return
            self._crashes = [each for each in self._crashes if not each.passed]
            self._crashes.append(Deadline(CRASH_WINDOW_S))
            if len(self._crashes) >= 2:
                self.given_up = True
                log.error(
                    "the controller ended twice within %.0f s (last status %s): it stays off, "
                    "queries run as plain Spark; call fleet.on() to try again",
                    CRASH_WINDOW_S,
                    status,
                )
                return
            log.warning("the controller ended (status %s); starting it again", status)
            with self._lock:
                if self._closed.is_set():
                    return
                self._process = self._spawn()

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        with contextlib.suppress(OSError):
            process.stdin.close()
        try:
            process.wait(timeout=2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
