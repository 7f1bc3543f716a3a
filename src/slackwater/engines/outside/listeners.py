"""Which process listens on a port of this machine."""

import socket
from collections.abc import Iterator
from pathlib import Path

from slackwater.common.procfs import pids

_LISTEN = "0A"


def pid_of_port(port: int) -> int | None:
    """Return the process; ``None`` if nobody listens, or somebody whose files are closed to us."""
    sockets = {f"socket:[{inode}]" for inode in _listening(port)}
    if not sockets:
        return None
    return next((pid for pid in pids() if _holds(Path(f"/proc/{pid}/fd"), sockets)), None)


def is_local(host: str) -> bool:
    """Tell whether an address is one of this machine's (of this network namespace's).

    >>> is_local("127.0.0.1"), is_local("192.0.2.1")
    (True, False)
    """
    try:
        with socket.socket() as probe:
            probe.bind((host, 0))
    except OSError:
        return False
    return True


def _listening(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/self/net/{table}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[3] == _LISTEN and int(fields[1].rpartition(":")[2], 16) == port:
                yield fields[9]


def _holds(folder: Path, sockets: set[str]) -> bool:
    try:
        links = list(folder.iterdir())
    except OSError:
        return False
    for link in links:
        try:
            if str(link.readlink()) in sockets:
                return True
        except OSError:
            continue
    return False
