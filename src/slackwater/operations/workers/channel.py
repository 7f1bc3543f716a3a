"""The channel between supervisor and workers: JSON lines that only holders of the token can write.

Both sides send a nonce; both prove that they know the token; a key for this connection follows
from all three. Every message then has a number and a code (HMAC-SHA256) over direction, number and
text, so that nothing can be made up, changed, repeated or sent back. A message that is not right
ends the connection.
"""

import contextlib
import hashlib
import hmac
import json
import secrets
import socket
import struct
import threading
from collections import deque
from typing import Any

from slackwater.core.clock import Deadline
from slackwater.ipc.framing import LineBuffer, ProtocolError

Message = dict[str, Any]

HANDSHAKE_S = 5.0
SEND_S = 5  # after which the other side counts as gone
_NONCE = 32  # characters


class Channel:
    """One end of an open channel. Sending may be done by several threads, receiving by one."""

    def __init__(self, connection: socket.socket, key: bytes, peer: str, *, server: bool) -> None:
        self.connection = connection
        self.peer = peer  # its name
        self._key = key
        self._mine, self._theirs = (b"s", b"c") if server else (b"c", b"s")
        self._sent = 0
        self._received = 0
        self._buffer = LineBuffer()
        self._lines: deque[bytes] = deque()  # that have come and were not asked for
        self._sending = threading.Lock()

    def send(self, message: Message) -> None:
        """Send a message; raise OSError when the other side has gone."""
        text = json.dumps(message, separators=(",", ":")).encode()
        with self._sending:
            code = _code(self._key, self._mine, self._sent, text)
            self._sent += 1
            try:
                self.connection.sendall(code + b" " + text + b"\n")
            except OSError:  # half of it may have gone: nothing after it would be understood
                self.close()
                raise

    def receive(self) -> Message | None:
        """Return the next message; None when the other side has closed."""
        while not self._lines:
            data = self.connection.recv(1 << 16)
            if not data:
                return None
            self._lines += self._buffer.feed(data)
        code, _, text = self._lines.popleft().partition(b" ")
        expected = _code(self._key, self._theirs, self._received, text)
        if not hmac.compare_digest(code, expected):
            raise ProtocolError(f"a message that {self.peer} did not send so")
        self._received += 1
        return _parsed(text)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        self.connection.close()


def accept(connection: socket.socket, token: bytes) -> Channel:
    """Let a worker in that knows the token: the supervisor's side."""
    end = _begin(connection)
    nonce = secrets.token_hex(_NONCE // 2)
    _write(connection, {"nonce": nonce})
    answer = _read(connection, end)
    theirs, name, proof = (_text(answer, key) for key in ("nonce", "name", "proof"))
    if not hmac.compare_digest(proof, _proof(token, "worker", nonce, theirs, name)):
        raise ProtocolError("somebody without the token wanted to join")
    _write(connection, {"proof": _proof(token, "supervisor", nonce, theirs, name)})
    _end_handshake(connection)
    return Channel(connection, _key(token, nonce, theirs, name), name, server=True)


def join(connection: socket.socket, token: bytes, name: str) -> Channel:
    """Join a supervisor that knows the token as well: a worker's side."""
    end = _begin(connection)
    theirs = _text(_read(connection, end), "nonce")
    nonce = secrets.token_hex(_NONCE // 2)
    proof = _proof(token, "worker", theirs, nonce, name)
    _write(connection, {"nonce": nonce, "name": name, "proof": proof})
    answer = _text(_read(connection, end), "proof")
    if not hmac.compare_digest(answer, _proof(token, "supervisor", theirs, nonce, name)):
        raise ProtocolError("the supervisor does not know the token")
    _end_handshake(connection)
    return Channel(connection, _key(token, theirs, nonce, name), "supervisor", server=False)


def _begin(connection: socket.socket) -> Deadline:
    """Return when a handshake must be over."""
    connection.settimeout(HANDSHAKE_S)
    return Deadline(HANDSHAKE_S)


def _end_handshake(connection: socket.socket) -> None:
    """Let messages be long in coming from now on; but one that nobody takes must hold nobody."""
    connection.settimeout(None)
    limit = struct.pack("@ll", SEND_S, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)


def _code(key: bytes, direction: bytes, number: int, text: bytes) -> bytes:
    signed = direction + b"%d " % number + text
    return hmac.new(key, signed, hashlib.sha256).hexdigest().encode()


def _proof(token: bytes, who: str, *parts: str) -> str:
    return hmac.new(token, "|".join((who, *parts)).encode(), hashlib.sha256).hexdigest()


def _key(token: bytes, *parts: str) -> bytes:
    return hmac.new(token, "|".join(("key", *parts)).encode(), hashlib.sha256).digest()


def _write(connection: socket.socket, message: Message) -> None:
    connection.sendall(json.dumps(message).encode() + b"\n")


def _read(connection: socket.socket, end: Deadline) -> Message:
    """Read one line of a handshake, byte by byte, so that nothing of what follows is taken."""
    line = b""
    while not line.endswith(b"\n"):
        data = connection.recv(1)
        if not data or len(line) > 1000 or end.passed:
            raise ProtocolError("the other side does not speak this protocol")
        line += data
    return _parsed(line)


def _parsed(text: bytes) -> Message:
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise ProtocolError(f"not a message: {text[:60]!r}")
    return found


def _text(message: Message, key: str) -> str:
    value = message.get(key)
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isascii():
        raise ProtocolError("the other side does not speak this protocol")
    return value
