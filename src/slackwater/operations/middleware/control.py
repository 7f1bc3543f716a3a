"""How a running middleware is asked and told: JSON lines over a private Unix socket."""

import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from slackwater.core.errors import SlackwaterError
from slackwater.ipc import wire

Answer = Callable[[wire.Message], Any]


def folder() -> Path:
    """Journals and sockets of middlewares: ours alone, mode 0700.

    Root has one place, from whichever session it comes: what a killed one left must be found.
    """
    anywhere = os.getuid() != 0 or "SLACKWATER_RUNTIME_DIR" in os.environ
    path = wire.runtime_dir() / "middleware" if anywhere else Path("/run/slackwater-middleware")
    path.mkdir(mode=0o700, exist_ok=True)
    return path


class Control:
    """Answers questions in a thread of its own until it is closed.

    Parameters
    ----------
    path
        Of the socket.
    answer
        Called with each question; what it raises as :class:`SlackwaterError` is told.
    """

    def __init__(self, path: Path, answer: Answer) -> None:
        self.path = path
        self._answer = answer
        self._server = wire.listen(path)
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            with connection, suppress(Exception):  # whoever asks nonsense gets no answer
                connection.settimeout(2.0)
                self._talk(connection)

    def _talk(self, connection: socket.socket) -> None:
        if wire.peer_uid(connection) not in (0, os.getuid()):
            return
        buffer = wire.LineBuffer()
        while data := connection.recv(1 << 16):
            for message in buffer.feed(data):
                try:
                    value = {"value": self._answer(message)}
                except SlackwaterError as error:
                    value = {"value": {"error": str(error)}}
                connection.sendall(wire.encode({"op": "answer", **value}))
