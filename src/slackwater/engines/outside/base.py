"""What all drivers share."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from slackwater.core.entities import Operator, Reading
from slackwater.core.errors import EngineError
from slackwater.core.threads import Thread, thread_cpu_ns


class Driver(ABC):
    """Base of every driver. A member writes :meth:`_read`.

    Parameters
    ----------
    label
        The engine's name, as the user called it.
    """

    name: ClassVar[str] = ""  # of the kind of engine, as users write it
    provides: frozenset[str] = frozenset({"cpu-time"})

    def __init__(self, label: str) -> None:
        self.label = label
        self._cpu_s: dict[str, tuple[dict[Thread, int], float]] = {}

    def read(self, now_s: float) -> Reading:
        """Operators, threads and metrics; CPU time is added here for all engines alike."""
        try:
            reading = self._read(now_s)
        except EngineError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
            detail = f"{type(error).__name__}: {error}"
            raise EngineError(f"{self.label} answers nonsense ({detail})") from error
        metrics = {**reading.metrics, "cpu-time": self._cpu_time(reading.operators)}
        return Reading(reading.at_s, reading.operators, metrics)

    @abstractmethod
    def _read(self, now_s: float) -> Reading:
        """Without CPU times. What cannot be made sense of may raise what it likes."""

    def pids(self) -> Iterable[int]:
        """Processes of the engine on this machine, as of the last reading."""
        return ()

    def close(self) -> None:  # noqa: B027
        """Let go of connections."""

    def _cpu_time(self, operators: Iterable[Operator]) -> dict[str, float]:
        """Seconds that each operator's threads have run; never goes back when one of them ends."""
        found = {}
        for operator in operators:
            before, ended_s = self._cpu_s.get(operator.name, ({}, 0.0))
            now = {thread: thread_cpu_ns(thread) for thread in operator.threads}
            ended_s += sum(ns for thread, ns in before.items() if thread not in now) / 1e9
            self._cpu_s[operator.name] = (now, ended_s)
            found[operator.name] = ended_s + sum(now.values()) / 1e9
        for name in self._cpu_s.keys() - found.keys():
            del self._cpu_s[name]
        return found
