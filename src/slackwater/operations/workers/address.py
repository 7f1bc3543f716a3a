"""Where supervisor and workers meet: a Unix socket of mode 0600, or TCP, loopback by default."""

import contextlib
import socket
from pathlib import Path

from slackwater.core.errors import UsageError
from slackwater.ipc import unix_socket


def default_socket(fleet: str) -> Path:
    """Return the socket of a fleet that is not told where to listen."""
    return unix_socket.socket_path(f"{fleet}.workers")


def token_path(fleet: str) -> Path:
    """Return where the token of a fleet is kept, mode 0600."""
    return unix_socket.runtime_dir() / f"{fleet}.token"


def parse(text: str) -> tuple[str, int]:
    """Split an address into host and port.

    >>> parse("127.0.0.1:7400"), parse(":7400")
    (('127.0.0.1', 7400), ('127.0.0.1', 7400))
    """
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise UsageError(f"{text!r} is no address; write host:port, as 127.0.0.1:7400")
    return host or "127.0.0.1", int(port)


def listen(fleet: str, address: str | None) -> socket.socket:
    """Return the supervisor's socket; refuse while another supervisor answers there."""
    if address is None:
        with contextlib.suppress(OSError):
            connect(fleet, None).close()
            raise UsageError(f"another supervisor runs the fleet {fleet!r}: end it first")
        return unix_socket.listen(default_socket(fleet))
    server = socket.create_server(parse(address))
    server.listen(64)
    return server


def connect(fleet: str, address: str | None) -> socket.socket:
    """Return a worker's connection; raise OSError while nobody is there."""
    if address is not None:
        return socket.create_connection(parse(address), timeout=5)
    return unix_socket.connect(default_socket(fleet), timeout_s=5)


def is_ours(connection: socket.socket) -> bool:
    """Tell whether who connects may try: over a Unix socket only the same user."""
    return connection.family != socket.AF_UNIX or unix_socket.may_talk(connection)
