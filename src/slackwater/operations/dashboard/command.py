"""What ``slackwater dashboard`` and ``slackwater run --dashboard`` do."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

from slackwater.common.subprocesses import child_environment, collect_seldom
from slackwater.core.errors import SlackwaterError
from slackwater.ipc.unix_socket import controller_sockets, runtime_dir, socket_path
from slackwater.operations.dashboard.server import Dashboard, listen
from slackwater.operations.dashboard.status import Status
from slackwater.operations.dashboard.watch import Watch
from slackwater.operations.middleware import control
from slackwater.operations.workers.secret import VARIABLE, make_token, read_token


def token_path() -> Path:
    return runtime_dir() / "dashboard.token"


def sockets(fleets: Sequence[str]) -> list[Path]:
    """List the sockets of the fleets with these names, or of all that run."""
    if fleets:
        return [socket_path(name) for name in fleets]
    return controller_sockets()


def open_dashboard(fleets: Sequence[str], port: int) -> Dashboard:
    """Return a page that listens and does not serve yet."""
    make_token(token_path())
    watch = Watch(
        lambda: sockets(fleets),
        lambda: sorted(control.folder().glob("*.sock")),
        expected=bool(fleets),
    )
    return listen(watch, port, read_token(token_path()))


def look(sockets: list[Path]) -> Status:
    """Look at these fleets once, as ``/status`` has it."""
    watch = Watch(lambda: sockets, expected=True)
    try:
        found = watch.now().status
    finally:
        watch.close()
    if all(fleet.state == "silent" for fleet in found.fleets):
        raise SlackwaterError(f"no controller answers at {', '.join(map(str, sockets))}")
    return found


def serve(fleets: Sequence[str], port: int, ready: Callable[[str], None]) -> None:
    """Serve the page until a signal."""
    dashboard = open_dashboard(fleets, port)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: threading.Thread(target=dashboard.shutdown).start())
    collect_seldom()
    ready(dashboard.url)
    try:
        dashboard.serve_forever(poll_interval=1.0)
    finally:
        dashboard.watch.close()
        dashboard.server_close()


def invitation(url: str, on_terminal: bool) -> str:
    """Say where to look; the token goes to a terminal only, not into a log."""
    if on_terminal:
        return f"page: {url}#token={read_token(token_path()).decode()}"
    where = f"in {VARIABLE}" if VARIABLE in os.environ else f"in {token_path()}"
    return f"page: {url} (the token for switching is {where})"


class DashboardProcess:
    """The page of a fleet, or of its workers, as a process of its own: so it takes nothing from the
    driver's Python. It ends when we do."""

    def __init__(self, fleets: Sequence[str], port: int) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "slackwater.operations.dashboard"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=child_environment(),
            start_new_session=True,  # Ctrl-C at the terminal is ours to handle
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"fleets": fleets, "port": port}) + "\n")
        self._process.stdin.flush()
        self.url = self._process.stdout.readline().strip()
        if not self.url:
            raise SlackwaterError("the page could not be started")

    @property
    def pid(self) -> int:
        return self._process.pid

    def close(self) -> None:
        """End it by closing its standard input."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
