"""What gates and controller say to each other: JSON lines over a Unix socket.

A gate says ``spec`` (what a query is), ``arrive`` (it is at its gate), ``done`` (its batch has
ended), ``gone`` (it has terminated) and ``progress`` (what Spark reported). The controller says
``grant`` and, when it has said nothing for a moment, ``beat``: both renew the lease, and a beat
says whether gates are to be open. A gate whose lease has run out opens itself. Anyone of the same
user may ``ask`` for the status or the last decisions.
"""

import json
import os
import socket
import stat
import struct
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from slackwater.core.errors import SlackwaterError, UsageError

Message = dict[str, Any]

MAX_LINE = 1 << 20  # a longer message is an error, not a reason to use up memory
BEAT_PERIOD_S = 0.4
LEASE_S = 1.2  # three beats lost: the controller is gone or hangs


class WireError(SlackwaterError):
    """The other side does not speak this protocol."""


def runtime_dir() -> Path:
    """The folder of control sockets: ours alone, mode 0700."""
    base = os.environ.get("SLACKWATER_RUNTIME_DIR") or os.environ.get("XDG_RUNTIME_DIR")
    if base:
        folder = Path(base) / "slackwater"
    else:
        folder = Path(tempfile.gettempdir()) / f"slackwater-{os.getuid()}"
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    info = folder.stat()
    if info.st_uid != os.getuid() or stat.S_IMODE(info.st_mode) & 0o077:
        raise UsageError(f"{folder} must belong to you with mode 0700; remove it or chmod it")
    return folder


def socket_path(fleet: str) -> Path:
    """Where the controller of a fleet listens."""
    path = runtime_dir() / f"{fleet}.sock"
    if len(os.fsencode(path)) > 100:  # the kernel's limit is 108 bytes
        raise UsageError(f"{path} is too long for a Unix socket; set SLACKWATER_RUNTIME_DIR")
    return path


def own_name() -> str:
    """Of a fleet that was given none."""
    return f"fleet-{os.getpid()}"


def sockets() -> list[Path]:
    """Of all controllers; one that was killed leaves its own."""
    found = sorted(runtime_dir().glob("*.sock"))
    return [path for path in found if not path.stem.endswith(".workers")]  # those are supervisors


def answers(path: Path, timeout_s: float = 2.0) -> bool:
    """Whether somebody is there: one that was killed leaves its socket."""
    try:
        ask(path, "status", timeout_s)
    except SlackwaterError:
        return False
    return True


def refuse_if_answered(path: Path, fleet: str) -> None:
    """Two fleets of one name would take each other's gates."""
    if answers(path, timeout_s=1.0):
        raise UsageError(f"a fleet named {fleet!r} is running already; give this one another name")


def listen(path: Path) -> socket.socket:
    """A listening socket, mode 0600; a stale file of a dead controller is replaced."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old_mask = os.umask(0o177)
    try:
        server.bind(str(path))
    finally:
        os.umask(old_mask)
    server.listen(512)
    return server


def peer_uid(connection: socket.socket) -> int:
    """The user at the other end, as the kernel knows it."""
    size = struct.calcsize("3i")
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    return int(struct.unpack("3i", raw)[1])


def encode(message: Message) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class LineBuffer:
    """Cuts a byte stream into messages.

    >>> buffer = LineBuffer()
    >>> list(buffer.feed(b'{"op":"beat"}\\n{"op":'))
    [{'op': 'beat'}]
    >>> list(buffer.feed(b'"grant"}\\n'))
    [{'op': 'grant'}]
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise WireError(f"a message of more than {MAX_LINE} bytes")
        for line in lines:
            yield _decode(line)


def _decode(line: bytes) -> Message:
    try:
        message = json.loads(line)
    except ValueError as error:
        raise WireError(f"not JSON: {line[:80]!r}") from error
    if not isinstance(message, dict) or not isinstance(message.get("op"), str):
        raise WireError(f"not a message: {line[:80]!r}")
    return message


def ask(path: Path, what: str, timeout_s: float = 2.0, **details: Any) -> Any:
    """Put one question to a running controller (``status``, ``decisions``)."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(str(path))
            connection.sendall(encode({"op": "ask", "what": what, **details}))
            buffer = LineBuffer()
            while data := connection.recv(1 << 16):
                for message in buffer.feed(data):
                    if message["op"] == "answer":
                        return message["value"]
        except OSError as error:
            raise SlackwaterError(f"no controller answers at {path}: {error}") from error
    raise SlackwaterError(f"the controller at {path} closed the connection")
