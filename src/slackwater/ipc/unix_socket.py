"""Private Unix sockets: where they are, and who is at the other end."""

import os
import socket
import stat
import struct
import tempfile
from pathlib import Path

from slackwater.core.errors import UsageError

MAX_PATH = 100  # bytes; the kernel's limit is 108
WORKERS_SUFFIX = ".workers"  # of the sockets of supervisors


def runtime_dir() -> Path:
    """Return the folder of control sockets, made where it is missing: ours alone, mode 0700."""
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
    """Return where the controller of a fleet listens."""
    path = runtime_dir() / f"{fleet}.sock"
    if len(os.fsencode(path)) > MAX_PATH:
        raise UsageError(f"{path} is too long for a Unix socket; set SLACKWATER_RUNTIME_DIR")
    return path


def default_fleet_name() -> str:
    """Return the name of a fleet that was given none."""
    return f"fleet-{os.getpid()}"


def controller_sockets() -> list[Path]:
    """List the sockets of all controllers; one that was killed leaves its own."""
    found = sorted(runtime_dir().glob("*.sock"))
    return [path for path in found if not path.stem.endswith(WORKERS_SUFFIX)]


def listen(path: Path) -> socket.socket:
    """Return a listening socket, mode 0600; replace the stale file of a dead process."""
    path.unlink(missing_ok=True)
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    old_mask = os.umask(0o177)
    try:
        server.bind(str(path))
    finally:
        os.umask(old_mask)
    server.listen(512)
    return server


def connect(path: Path, timeout_s: float) -> socket.socket:
    """Return a connection; raise OSError while nobody is there."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(timeout_s)
    try:
        connection.connect(str(path))
    except OSError:
        connection.close()
        raise
    return connection


def may_talk(connection: socket.socket) -> bool:
    """Tell whether the other end is the same user or root, as the kernel knows it."""
    size = struct.calcsize("3i")
    raw = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size)
    _pid, uid, _gid = struct.unpack("3i", raw)
    return uid in (os.getuid(), 0)
