"""Starts queries again that failed through no fault of their own."""

import logging
import queue
import threading
import time
from collections.abc import Callable

from slackwater.engines.spark.queries.registry import Member, first_line

log = logging.getLogger("slackwater.fleet")

START_LIMIT_S = 90.0  # how long a start may take to reach its first trigger
MAX_RESTARTS = 5  # in a row, without a batch in between
PAUSE_S = 1.0  # before the first restart, twice as long before the second, …

# A query that fails with one of these has done nothing wrong: a Python process of a source did not
# connect back in time, or was killed.
_WORKER_LOST = ("failed to connect back", "Python worker exited unexpectedly")
_CONNECTION_LOST = ("java.io.EOFException", "Broken pipe", "Connection reset")
_PYTHON_SOURCE = (
    "PythonStreamingSourceRunner"  # in the trace; else it was the user's own connection
)


class Restarter:
    """A thread that calls ``launch(member)`` for members that lost a Python process."""

    def __init__(self, launch: Callable[[Member], None]) -> None:
        self._launch = launch
        self._closing = threading.Event()
        self._due: queue.Queue[Member | None] = queue.Queue()
        self._thread = threading.Thread(target=self._run, name="slackwater-restarts", daemon=True)
        self._thread.start()

    def failed(self, member: Member, exception: str) -> None:
        """Take note of a failure; starts the query again where that makes sense."""
        member.error = first_line(exception)
        retry = member.writer is not None and member.attempts < MAX_RESTARTS
        if retry and lost_a_worker(exception):
            member.ready.clear()
            self._due.put(member)
        else:
            member.ended = True
            member.ready.set()
            log.error("%s failed, the others go on: %s", member.spec.name, member.error)

    def close(self) -> None:
        """After this, nothing is started any more."""
        self._closing.set()
        self._due.put(None)
        self._thread.join(timeout=START_LIMIT_S)

    def _run(self) -> None:
        while (member := self._due.get()) is not None:
            name = member.spec.name
            member.restarts += 1
            member.attempts += 1
            log.warning("%s lost a Python process (%s); starting it again", name, member.error)
            self._closing.wait(PAUSE_S * member.attempts)
            if member.stopped or self._closing.is_set():
                continue
            try:
                member.error = None
                self._launch(member)
                self._await_outcome(member)
            except Exception as error:
                member.error = first_line(str(error))
                member.ended = True
                member.ready.set()
                log.error("%s could not be started again: %s", name, member.error)

    def _await_outcome(self, member: Member) -> None:
        """One at a time: the machine was too busy for several before."""
        until_s = time.monotonic() + START_LIMIT_S
        while time.monotonic() < until_s and not self._closing.is_set():
            if member.ready.wait(0.05) or member.error is not None:
                return


def lost_a_worker(exception: str) -> bool:
    """Whether a Python process of a source is to blame, not the query or its source's own code.

    >>> lost_a_worker("SparkException: Python worker failed to connect back.")
    True
    >>> lost_a_worker("java.net.SocketException: Connection reset at JdbcSink.write")
    False
    """
    if any(sign in exception for sign in _WORKER_LOST):
        return True
    return _PYTHON_SOURCE in exception and any(sign in exception for sign in _CONNECTION_LOST)
