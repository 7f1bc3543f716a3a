"""The roles around the loops. Everything that can be plugged in is here."""

from typing import Protocol

from slackwater.core.entities import Reading
from slackwater.core.model import Schedule, Snapshot


class Clock(Protocol):
    """The source of time. Nothing else may ask the operating system for it."""

    def now(self) -> float:
        """Return seconds since the epoch, as event times are."""

    def monotonic(self) -> float:
        """Return seconds since some moment; they never go back, whatever is done to the date."""

    def sleep(self, seconds: float) -> None:
        """Let so much time pass."""


class EngineDriver(Protocol):
    """An engine as the controller sees it: something to look at and to wait for."""

    def collect(self, now_s: float) -> Snapshot:
        """Return every query with its phase and metrics."""

    def wait(self, until_s: float) -> None:
        """Return when something changed or at ``until_s``, whichever is first."""


class Policy(Protocol):
    """Turns a snapshot into a schedule. Never acts, never sees an engine."""

    def decide(self, snapshot: Snapshot) -> Schedule:
        """Decide whom to admit now, in order, and when to be asked again."""


class Enforcer(Protocol):
    """Makes the engine or the operating system obey a schedule."""

    def enforce(self, schedule: Schedule) -> None:
        """Carry it out; a query that has gone meanwhile is passed over."""


class OutsideDriver(Protocol):
    """An engine that is only looked at, through its public interfaces and ``/proc``.

    See docs/drivers.md for what each metric means and how to write one.
    """

    label: str  # the engine's name, as the user called it
    provides: frozenset[str]  # names of the metrics that its readings can hold

    def read(self, now_s: float) -> Reading:
        """Return operators with their threads on this machine, and metrics.

        Raises :class:`~slackwater.core.errors.EngineError` when the engine does not answer or
        answers nonsense; it is asked again in the next period.
        """

    def close(self) -> None:
        """Let go of connections."""
