"""Patience with a server that is away, for a limited time."""

import time
from collections.abc import Callable
from typing import TypeVar

from slackwater.core.errors import SlackwaterError
from slackwater.engines.spark.sources.log.errors import ServerAway

PAUSE_S = 0.1  # between two tries

T = TypeVar("T")


class Outage:
    """Knows for how long a server has been away."""

    def __init__(self, server: str, limit_s: float) -> None:
        self._server = server
        self._limit_s = limit_s
        self._since_s: float | None = None

    def note(self, error: ServerAway) -> None:
        """A try failed: pause, or give up when the server has been away for too long."""
        now_s = time.monotonic()
        if self._since_s is None:
            self._since_s = now_s
        if now_s - self._since_s >= self._limit_s:
            raise SlackwaterError(
                f"{self._server} did not answer for {self._limit_s:g} s ({error}): start it and "
                "restart the query from its checkpoint, or raise retry_s"
            ) from None
        time.sleep(PAUSE_S)

    def over(self) -> None:
        """The server has answered."""
        self._since_s = None

    def outlast(self, action: Callable[[], T]) -> T:
        """Try ``action`` until it succeeds."""
        while True:
            try:
                result = action()
            except ServerAway as error:
                self.note(error)
            else:
                self.over()
                return result
