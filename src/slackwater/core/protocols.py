"""The four roles around the controller. Everything that can be plugged in is here."""

from typing import Protocol

from slackwater.core.model import Schedule, Snapshot


class Clock(Protocol):
    """Where time comes from. Nothing else may ask the operating system for it."""

    def now(self) -> float:
        """Seconds since the epoch."""


class EngineDriver(Protocol):
    """An engine as the controller sees it: something to look at and to wait for."""

    def collect(self, now_s: float) -> Snapshot:
        """Every query with its phase and metrics."""

    def wait(self, until_s: float) -> None:
        """Return when something changed or at ``until_s``, whichever is first."""


class Policy(Protocol):
    """Turns a snapshot into a schedule. Never acts, never sees an engine."""

    def decide(self, snapshot: Snapshot) -> Schedule:
        """Whom to admit now, in order, and when to be asked again."""


class Enforcer(Protocol):
    """Makes the engine or the operating system obey a schedule."""

    def enforce(self, schedule: Schedule) -> None:
        """Carry it out; a query that has gone meanwhile is passed over."""
