"""Names of a JVM's threads, over the socket that every HotSpot opens on request. Needs no JDK.

The kernel knows only the first 15 characters of a thread's name; the JVM knows all, and the
thread's number with it.
"""

import os
import re
import signal
import socket
import stat
from contextlib import suppress
from pathlib import Path

from slackwater.core.clock import Deadline
from slackwater.core.errors import EngineError

OPEN_LIMIT_S = 5.0
_LARGEST = 64 << 20
_THREAD = re.compile(r'^"(?P<name>.*)" .*\bnid=(?P<nid>0x[0-9a-f]+|\d+)\b')


def thread_names(pid: int, timeout_s: float = 5.0) -> dict[int, str]:
    """Return the names of a JVM's threads by their numbers."""
    return parse_dump(_ask(pid, "threaddump", timeout_s))


def parse_dump(text: str) -> dict[int, str]:
    """Read the threads of a dump; numbers are hexadecimal before Java 21, decimal since.

    >>> parse_dump('"Calc[2] (1/1)#0" #78 prio=5 os_prio=0 tid=0x7f nid=0x1914 runnable  [0x0]')
    {6420: 'Calc[2] (1/1)#0'}
    >>> parse_dump('"main" #1 [6420] prio=5 cpu=2.1ms tid=0x7f nid=6420 waiting')
    {6420: 'main'}
    """
    found = {}
    for line in text.splitlines():
        match = _THREAD.match(line) if line.startswith('"') else None
        if match is not None:
            found[int(match["nid"], 0)] = match["name"]
    return found


def is_jvm(pid: int) -> bool:
    """Tell whether a process has HotSpot loaded."""
    try:
        return "libjvm.so" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False


def _ask(pid: int, command: str, timeout_s: float) -> str:
    path = _socket_path(pid)
    deadline = Deadline(timeout_s)
    try:
        if not _is_open(pid, path):
            _open_socket(pid, path)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(timeout_s)
            connection.connect(str(path))
            connection.sendall(f"1\0{command}\0\0\0\0".encode())
            status, _, text = _all(connection, deadline).partition(b"\n")
    except OSError as error:
        raise EngineError(f"the JVM {pid} does not tell its threads: {error}") from error
    if status != b"0":
        raise EngineError(f"the JVM {pid} does not tell its threads: status {status[:40]!r}")
    return text.decode(errors="replace")


def _is_open(pid: int, path: Path) -> bool:
    """Tell whether the JVM listens there.

    Anybody may write to ``/tmp``: what is not its own, or root's, is not asked.
    """
    try:
        found = path.lstat()
    except FileNotFoundError:
        return False
    if not stat.S_ISSOCK(found.st_mode) or found.st_uid not in (0, _owner(pid).st_uid):
        raise EngineError(f"{path} is not the socket of the JVM {pid}: remove it")
    return True


def _owner(pid: int) -> os.stat_result:
    try:
        return os.stat(f"/proc/{pid}")
    except OSError as error:
        raise EngineError(f"process {pid} has gone") from error


def _all(connection: socket.socket, deadline: Deadline) -> bytes:
    parts, size = [], 0
    while data := connection.recv(1 << 16):
        if deadline.passed:
            raise OSError("a slow answer")
        parts.append(data)
        size += len(data)
        if size > _LARGEST:
            raise OSError("endless answer")
    return b"".join(parts)


def _socket_path(pid: int) -> Path:
    """Return where the JVM's ``/tmp`` is seen from here; a container has numbers of its own."""
    return Path(f"/proc/{pid}/root/tmp/.java_pid{_inner_pid(pid)}")


def _inner_pid(pid: int) -> int:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError as error:
        raise EngineError(f"process {pid} has gone") from error
    match = re.search(r"^NSpid:\s+(.*)$", status, re.MULTILINE)
    return int(match.group(1).split()[-1]) if match else pid


def _open_socket(pid: int, path: Path) -> None:
    """Ask for it: a file of a certain name, and the signal that makes the JVM look for it."""
    if not is_jvm(pid) or not _catches_quit(pid):
        # The signal would end a process that does not expect it.
        raise EngineError(f"process {pid} is no JVM that is ready to tell its threads")
    request = Path(f"/proc/{pid}/root/tmp/.attach_pid{_inner_pid(pid)}")
    owner = _owner(pid)
    try:
        file = os.open(request, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with suppress(PermissionError):  # by its number: the name may be another's by now
            os.fchown(file, owner.st_uid, owner.st_gid)  # the JVM takes only its own user's
        os.close(file)
    except FileExistsError:
        pass
    except OSError as error:
        raise EngineError(f"cannot attach to the JVM {pid}: {error.strerror}") from error
    try:
        os.kill(pid, signal.SIGQUIT)
        if not Deadline(OPEN_LIMIT_S).wait_for(lambda: _is_open(pid, path), every_s=0.01):
            raise EngineError(f"the JVM {pid} does not open its attach socket")
    except OSError as error:
        raise EngineError(f"cannot attach to the JVM {pid}: {error.strerror}") from error
    finally:
        request.unlink(missing_ok=True)


def _catches_quit(pid: int) -> bool:
    """Tell whether it handles the signal; a JVM that has only just started does not yet."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    match = re.search(r"^SigCgt:\s*(\w+)", status, re.MULTILINE)
    return bool(match and int(match.group(1), 16) >> (signal.SIGQUIT - 1) & 1)
