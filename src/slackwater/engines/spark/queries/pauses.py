"""Queries that a person stops for a while."""

import threading

from slackwater.core.errors import UsageError
from slackwater.engines.spark.queries.launcher import Launcher
from slackwater.engines.spark.queries.registry import Member


class Pauses:
    """Stops and restarts queries of a fleet, one at a time."""

    def __init__(self, members: dict[str, Member], launcher: Launcher) -> None:
        self._members = members
        self._launcher = launcher
        self._lock = threading.Lock()  # a query that is being paused does not go on meanwhile

    def pause(self, name: str) -> None:
        """Stop a query after the batch that runs."""
        member = self._started(name)
        with self._lock:
            member.paused = member.by_hand = True
            if member.query is not None:
                member.query.stop()

    def resume(self, name: str) -> None:
        """Let it go on from its checkpoint, if it was paused."""
        member = self._started(name)
        with self._lock:
            if member.paused:
                member.paused = member.by_hand = False
                member.ready.clear()
                self._launcher.relaunch(member)

    def _started(self, name: str) -> Member:
        member = self._members.get(name)
        if member is None or member.writer is None:
            raise UsageError(f"the fleet has started no query named {name!r}")
        return member
