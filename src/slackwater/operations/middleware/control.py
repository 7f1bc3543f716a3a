"""How a running middleware is asked and told, over a private Unix socket."""

import math
import os
import threading
from collections.abc import Callable
from pathlib import Path

from slackwater.core.clock import RealClock
from slackwater.core.errors import SlackwaterError
from slackwater.ipc.questions import Ask, Failure, Question, answer, read_question
from slackwater.ipc.server import Client, Server
from slackwater.ipc.unix_socket import runtime_dir

Answers = Callable[[Question | Ask], object]


def folder() -> Path:
    """Return the folder of journals and sockets of middlewares: ours alone, mode 0700.

    Root has one place, from whichever session it comes: what a killed one left must be found.
    """
    anywhere = os.getuid() != 0 or "SLACKWATER_RUNTIME_DIR" in os.environ
    path = runtime_dir() / "middleware" if anywhere else Path("/run/slackwater-middleware")
    path.mkdir(mode=0o700, exist_ok=True)
    return path


class Control:
    """Answers questions in a thread of its own until it is closed.

    Parameters
    ----------
    path
        Of the socket.
    answers
        Called with each question; what it raises as :class:`SlackwaterError` is told.
    """

    def __init__(self, path: Path, answers: Answers) -> None:
        self.path = path
        self._answers = answers
        self._server = Server(path, RealClock(), read_question, self)
        self._closed = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread and remove the socket."""
        self._closed = True
        self._server.wake()
        self._thread.join()
        self._server.close()

    def received(self, client: Client, question: Question | Ask) -> bool:
        """Answer a question."""
        try:
            value = self._answers(question)
        except SlackwaterError as error:
            value = Failure(str(error))
        self._server.send(client, answer(value))
        return False

    def dropped(self, client: Client) -> None:
        """Take it that somebody has gone, which changes nothing."""

    def _serve(self) -> None:
        while not self._closed:
            self._server.wait(math.inf)
