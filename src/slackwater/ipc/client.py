"""The ends of a connection that do not listen: one question, or a gate's lasting link."""

import contextlib
import logging
import select
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from slackwater.core.clock import Deadline
from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.ipc.framing import Decoder, LineBuffer, ProtocolError, encode
from slackwater.ipc.messages import (
    Answer,
    Beat,
    Command,
    FromController,
    FromGate,
    Grant,
    read_from_controller,
)
from slackwater.ipc.questions import Ask, AskStatus, Failure, Question
from slackwater.ipc.server import LEASE_S
from slackwater.ipc.unix_socket import connect

log = logging.getLogger("slackwater.gate")

PATIENCE_S = 2.0  # for an answer
RECONNECT_S = 0.2
RECEIVED = 1 << 16  # bytes at once

A = TypeVar("A")


class Refused(UsageError):
    """The other side answered with an error."""


def ask(path: Path, question: Question | Ask, kind: type[A], timeout_s: float = PATIENCE_S) -> A:
    """Put one question to a running controller or middleware.

    Parameters
    ----------
    kind
        The type of what is answered; an error is raised as :class:`Refused`.
    """
    try:
        with connect(path, timeout_s) as connection:
            connection.sendall(encode(question))
            buffer = LineBuffer()
            while data := connection.recv(RECEIVED):
                for line in buffer.feed(data):
                    message = read_from_controller(line)
                    if isinstance(message, Answer):
                        return _value(bytes(message.value), kind)
    except OSError as error:
        raise SlackwaterError(f"no controller answers at {path}: {error}") from error
    raise SlackwaterError(f"the controller at {path} closed the connection")


def answers(path: Path, timeout_s: float = PATIENCE_S) -> bool:
    """Tell whether somebody is there: one that was killed leaves its socket."""
    try:
        ask(path, AskStatus(), object, timeout_s)
    except SlackwaterError:
        return False
    return True


def refuse_if_answered(path: Path, fleet: str) -> None:
    """Raise where a fleet of that name runs: two would take each other's gates."""
    if answers(path, timeout_s=1.0):
        raise UsageError(f"a fleet named {fleet!r} is running already; give this one another name")


def _value(value: bytes, kind: type[A]) -> A:
    if value.startswith(b"{"):
        failure: Failure = Decoder(Failure).decode(value)
        if failure.error is not None:
            raise Refused(failure.error)
    found: A = Decoder(kind).decode(value)
    return found


class Link:
    """One connection to the controller, kept by a daemon thread, made again when it is lost.

    Nobody is called before :meth:`start`.

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
    on_hold
        Called with how long gates must hold at least, before each change of the lease and when
        it has changed.
    """

    def __init__(
        self,
        path: Path,
        on_grant: Callable[[Grant], None],
        on_lease: Callable[[bool], None],
        on_command: Callable[[Command], None] = lambda command: None,
        on_hold: Callable[[float], None] = lambda hold_s: None,
    ) -> None:
        self._path = path
        self._on_grant = on_grant
        self._on_lease = on_lease
        self._on_command = on_command
        self._on_hold = on_hold
        self._hold_s = 0.0
        self._connection: socket.socket | None = None
        self._sending = threading.Lock()
        self._closed = threading.Event()
        self._held = threading.Event()
        self._thread = threading.Thread(target=self._run, name="slackwater-link", daemon=True)

    def start(self) -> None:
        """Start the thread: from now on what is called must have all that it needs."""
        self._thread.start()

    @property
    def held(self) -> bool:
        """Whether the lease holds."""
        return self._held.is_set()

    def wait_held(self, timeout_s: float) -> bool:
        """Wait until the lease holds; return whether it does."""
        return self._held.wait(timeout_s)

    def send(self, *messages: FromGate) -> None:
        """Send what can be sent: without a controller gates are open and nothing is owed."""
        with self._sending:
            if self._connection is None or not messages:
                return
            try:
                self._connection.sendall(b"".join(map(encode, messages)))
            except OSError:
                # Perhaps half a message went out: this connection is of no more use.
                self._connection.close()
                self._connection = None

    def close(self) -> None:
        """End the thread and the connection."""
        self._closed.set()
        with self._sending:
            if self._connection is not None:
                with contextlib.suppress(OSError):
                    self._connection.shutdown(socket.SHUT_RDWR)  # wakes the thread
        if self._thread.is_alive():
            self._thread.join(timeout=2 * LEASE_S)

    # -- the thread -----------------------------------------------------------------------------

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                connection = connect(self._path, LEASE_S / 2)  # also bounds how long a send blocks
            except OSError:
                self._closed.wait(RECONNECT_S)
                continue
            with self._sending:
                self._connection = connection
            try:
                self._listen(connection)
            except (OSError, ProtocolError) as error:
                log.info("controller connection lost: %s", error)
            except Exception:  # whatever it was, the gates must not stay shut
                log.exception("a message of the controller could not be handled")
            with self._sending:
                self._connection = None
            connection.close()
            self._set_held(False)
            self._closed.wait(RECONNECT_S)

    def _listen(self, connection: socket.socket) -> None:
        """Listen until the connection ends. A hanging controller keeps it, but loses the lease."""
        buffer = LineBuffer()
        lease = Deadline(0.0)
        while not self._closed.is_set():
            patience_s = lease.left_s if self.held else LEASE_S
            if not select.select([connection], [], [], patience_s)[0]:
                self._set_held(False)
                continue
            data = connection.recv(RECEIVED)
            if not data:
                return
            for line in buffer.feed(data):
                message = read_from_controller(line)
                lease = Deadline(LEASE_S)  # a grant is as good as a beat
                self._hear(message)

    def _hear(self, message: FromController) -> None:
        match message:
            case Beat():
                if message.hold_s != self._hold_s:
                    self._hold_s = message.hold_s
                    self._on_hold(message.hold_s)
                self._set_held(not message.open)
            case Grant():
                self._on_grant(message)
            case Command():
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
