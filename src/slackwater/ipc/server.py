"""The end of a connection that listens: one thread, one selector, many clients."""

import logging
import math
import selectors
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from slackwater.core.protocols import Clock
from slackwater.ipc.framing import LineBuffer, ProtocolError, encode
from slackwater.ipc.unix_socket import listen, may_talk

log = logging.getLogger("slackwater.controller")

BEAT_PERIOD_S = 0.4
LEASE_S = 1.2  # three beats lost: the controller is gone or hangs
SEND_LIMIT_S = 0.05  # one that does not read must not cost the others their lease
RECEIVED = 1 << 16  # bytes at once

M = TypeVar("M")
M_contra = TypeVar("M_contra", contravariant=True)


class Client:
    """One connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.buffer = LineBuffer()
        self.told_s = 0.0  # when it last heard of us
        self.beat_s = 0.0  # when it last heard a beat

    @property
    def beat_due_s(self) -> float:
        """When it must hear a beat: other messages renew the lease as well, but say less."""
        return min(self.told_s + BEAT_PERIOD_S, self.beat_s + LEASE_S)


class Handler(Protocol[M_contra]):
    """What a server does with what it hears."""

    def received(self, client: Client, message: M_contra) -> bool:
        """Take a message that fits; return whether the server's owner has something to do."""
        ...

    def dropped(self, client: Client) -> None:
        """Take it that a client has gone."""
        ...


class Server(Generic[M]):
    """Hears clients of the same user, and drops one that says what does not fit.

    Parameters
    ----------
    path
        Unix socket to listen on.
    read
        Makes a message of a line; raises :class:`ProtocolError`.
    beat
        Makes the message that clients hear when they have heard nothing else; None: no leases.
    """

    def __init__(
        self,
        path: Path,
        clock: Clock,
        read: Callable[[bytes], M],
        handler: Handler[M],
        beat: Callable[[], Any] | None = None,
    ) -> None:
        self.path = path
        self._clock = clock
        self._read = read
        self._handler = handler
        self._beat = beat
        self._clients: set[Client] = set()
        self._next_beat_s = math.inf if beat is None else 0.0
        self._selector = selectors.DefaultSelector()
        self._socket = listen(path)
        self._socket.setblocking(False)
        self._selector.register(self._socket, selectors.EVENT_READ)
        self._waker, self._awoken = socket.socketpair()
        self._selector.register(self._awoken, selectors.EVENT_READ)

    def wait(self, until_s: float) -> None:
        """Serve until that time, or until the handler says that there is something to do."""
        while True:
            now_s = self._clock.now()
            if now_s >= self._next_beat_s:
                self._beat_all(now_s)
            timeout_s = max(0.0, min(until_s, self._next_beat_s) - now_s)
            if self._serve(timeout_s) or self._clock.now() >= until_s:
                return

    def wake(self) -> None:
        """End :meth:`wait`, from another thread."""
        self._waker.send(b"!")

    def send(self, client: Client, *messages: Any) -> None:
        """Send messages; drop a client that does not take them."""
        try:
            client.connection.sendall(b"".join(map(encode, messages)))
        except OSError as error:
            log.warning("connection dropped: %s", error)
            self._drop(client)

    def renew(self, client: Client, message: Any) -> None:
        """Send a message that renews the lease, with a beat where one is due soon."""
        now_s = client.told_s = self._clock.now()
        messages = [message]
        # So that nobody wakes for a beat alone.
        if self._beat is not None and now_s >= client.beat_s + LEASE_S / 2:
            client.beat_s = now_s
            messages.append(self._beat())
        self.send(client, *messages)
        if self._clients == {client}:  # as usual
            self._next_beat_s = client.beat_due_s

    def broadcast(self, message: Any) -> None:
        """Send a message to every client."""
        for client in list(self._clients):
            self.send(client, message)

    def close(self) -> None:
        """Stop listening; clients notice at once."""
        for client in list(self._clients):
            self._drop(client)
        self._selector.close()
        for each in (self._socket, self._waker, self._awoken):
            each.close()
        self.path.unlink(missing_ok=True)

    def _serve(self, timeout_s: float) -> bool:
        """Handle what has come in; return whether the owner has something to do."""
        due = False
        for key, _ in self._selector.select(None if math.isinf(timeout_s) else timeout_s):
            if key.fileobj is self._socket:
                self._accept()
            elif key.fileobj is self._awoken:
                due = bool(self._awoken.recv(RECEIVED))
            else:
                due |= self._receive(key.data)
        return due

    def _accept(self) -> None:
        try:
            connection, _ = self._socket.accept()
        except OSError as error:
            log.warning("a connection could not be taken: %s", error)
            return
        if not may_talk(connection):
            log.warning("refused a connection of another user")
            connection.close()
            return
        connection.settimeout(SEND_LIMIT_S)
        client = Client(connection)
        self._clients.add(client)
        self._selector.register(connection, selectors.EVENT_READ, client)
        self._beat_all(self._clock.now())

    def _receive(self, client: Client) -> bool:
        try:
            data = client.connection.recv(RECEIVED)
            if data:
                due = False
                for line in client.buffer.feed(data):
                    due |= self._handler.received(client, self._read(line))
                return due
        except OSError as error:
            log.warning("connection dropped: %s", error)
        except ProtocolError as error:
            log.warning("message refused, connection dropped: %s", error)
        except Exception:  # one client must not end what serves the others
            log.exception("a message could not be handled, connection dropped")
        self._drop(client)
        return True

    def _beat_all(self, now_s: float) -> None:
        """Send a beat to all that have heard nothing for a while."""
        if self._beat is None:
            return
        for client in list(self._clients):
            if now_s >= client.beat_due_s:
                client.told_s = client.beat_s = now_s
                self.send(client, self._beat())
        due_s = (client.beat_due_s for client in self._clients)
        self._next_beat_s = min(due_s, default=now_s + BEAT_PERIOD_S)

    def _drop(self, client: Client) -> None:
        if client not in self._clients:
            return
        self._clients.discard(client)
        self._selector.unregister(client.connection)
        client.connection.close()
        self._handler.dropped(client)
