"""Where supervisor and workers meet: a Unix socket of mode 0600, or TCP, loopback by default."""

import contextlib
import os
import socket
from pathlib import Path

from slackwater.core.errors import UsageError
from slackwater.ipc import wire


def default_socket(fleet: str) -> Path:
    """Of a fleet that is not told where to listen."""
    return wire.socket_path(f"{fleet}.workers")


def token_path(fleet: str) -> Path:
    """Where the token of a fleet is kept, mode 0600."""
    return wire.runtime_dir() / f"{fleet}.token"


def parse(text: str) -> tuple[str, int]:
    """Host and port.

    >>> parse("127.0.0.1:7400"), parse(":7400")
    (('127.0.0.1', 7400), ('127.0.0.1', 7400))
    """
    host, _, port = text.rpartition(":")
    if not port.isdigit():
        raise UsageError(f"{text!r} is no address; write host:port, as 127.0.0.1:7400")
    return host or "127.0.0.1", int(port)


def listen(fleet: str, address: str | None) -> socket.socket:
    """The supervisor's socket; refused while another supervisor answers there."""
    if address is None:
        with contextlib.suppress(OSError):
            connect(fleet, None).close()
            raise UsageError(f"another supervisor runs the fleet {fleet!r}: end it first")
        return wire.listen(default_socket(fleet))
    server = socket.create_server(parse(address))
    server.listen(64)
    return server


def connect(fleet: str, address: str | None) -> socket.socket:
    """A worker's connection; raises OSError while nobody is there."""
    if address is not None:
        return socket.create_connection(parse(address), timeout=5)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(5)
    try:
        connection.connect(str(default_socket(fleet)))
    except OSError:
        connection.close()
        raise
    return connection


def is_ours(connection: socket.socket) -> bool:
    """Whether who connects may try: over a Unix socket only the same user."""
    if connection.family != socket.AF_UNIX:
        return True
    return wire.peer_uid(connection) in (os.getuid(), 0)
