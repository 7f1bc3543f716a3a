"""A gate's end of the wire: keeps the connection, hands out grants, watches the lease."""

import contextlib
import logging
import select
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

from slackwater.ipc import wire
from slackwater.ipc.wire import LineBuffer, Message

log = logging.getLogger("slackwater.gate")

RECONNECT_S = 0.2


class Link:
    """One connection to the controller, kept by a daemon thread, made again when it is lost.

    Parameters
    ----------
    path
        The controller's socket.
    on_grant
        Called with each grant.
    on_lease
        Called with ``True`` when the controller is there and wants queries held, with ``False``
        when it ended, hangs, or says that gates shall be open. Starts as ``False``.
    on_command
        Called with what somebody told the controller and the fleet must do. Must return at once.
    """

    def __init__(
        self,
        path: Path,
        on_grant: Callable[[Message], None],
        on_lease: Callable[[bool], None],
        on_command: Callable[[Message], None] = lambda command: None,
    ) -> None:
        self._path = path
        self._on_grant = on_grant
        self._on_lease = on_lease
        self._on_command = on_command
        self._connection: socket.socket | None = None
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._held = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slackwater-link", daemon=True)
        self._thread.start()

    @property
    def held(self) -> bool:
        """Whether the lease holds."""
        return self._held.is_set()

    def wait_held(self, timeout_s: float) -> bool:
        return self._held.wait(timeout_s)

    def send(self, *messages: Message) -> None:
        """Best effort: when the controller is not there, gates are open and nothing is owed."""
        with self._sending:
            if self._connection is None or not messages:
                return
            try:
                self._connection.sendall(b"".join(map(wire.encode, messages)))
            except OSError:
                # Perhaps half a message went out: this connection is of no more use.
                self._connection.close()
                self._connection = None

    def close(self) -> None:
        self._closed.set()
        with self._sending:
            if self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)  # wakes the thread
        self._thread.join(timeout=2 * wire.LEASE_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            connection = self._connect()
            if connection is None:
                self._closed.wait(RECONNECT_S)
                continue
            with self._sending:
                self._connection = connection
            try:
                self._listen(connection)
            except (OSError, wire.WireError) as error:
                log.info("controller connection lost: %s", error)
            except Exception:  # whatever it was, the gates must not stay shut
                log.exception("a message of the controller could not be handled")
            with self._sending:
                self._connection = None
            connection.close()
            self._set_held(False)
            self._closed.wait(RECONNECT_S)

    def _connect(self) -> socket.socket | None:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(wire.LEASE_S / 2)  # also bounds how long a send may block
        try:
            connection.connect(str(self._path))
            return connection
        except OSError:
            connection.close()
            return None

    def _listen(self, connection: socket.socket) -> None:
        """Until the connection ends. A hanging controller keeps it, but loses the lease."""
        buffer = LineBuffer()
        lease_until_s = 0.0
        while not self._closed.is_set():
            patience_s = max(0.0, lease_until_s - time.monotonic()) if self.held else wire.LEASE_S
            if not select.select([connection], [], [], patience_s)[0]:
                self._set_held(False)
                continue
            data = connection.recv(1 << 16)
            if not data:
                return
            for message in buffer.feed(data):
                lease_until_s = time.monotonic() + wire.LEASE_S  # a grant is as good as a beat
                if message["op"] == "beat":
                    self._set_held(not message["open"])
                elif message["op"] == "grant":
                    self._on_grant(message)
                elif message["op"] == "command":
                    self._on_command(message)

    def _set_held(self, held: bool) -> None:
        if held == self.held:
            return
        # Told before the flag is seen by others, so that who waits for the lease finds all done.
        try:
            self._on_lease(held)
        except Exception:
            log.exception("the gates did not take the change of the lease")
        if held:
            self._held.set()
        else:
            self._held.clear()
