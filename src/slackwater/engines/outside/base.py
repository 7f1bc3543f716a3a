"""What all drivers share."""

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import ClassVar

from slackwater.common.procfs import thread_cpu_ns
from slackwater.core.entities import Operator, Reading, Thread, Values
from slackwater.core.errors import EngineError


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
        self._cpu_s: dict[str, float] = {}  # by operator
        self._thread_ns: dict[Thread, int] = {}  # at the last reading

    def read(self, now_s: float) -> Reading:
        """Read operators, threads and metrics; CPU time is added here for all engines alike."""
        try:
            reading = self._read(now_s)
        except EngineError:
            raise
        except Exception as error:
            detail = f"{type(error).__name__}: {error}"
            raise EngineError(f"{self.label} answers nonsense ({detail})") from error
        metrics = {name: _finite(values) for name, values in reading.metrics.items()}
        metrics["cpu-time"] = self._cpu_time(reading.operators)
        return Reading(reading.at_s, reading.operators, metrics)

    @abstractmethod
    def _read(self, now_s: float) -> Reading:
        """Read without CPU times. What cannot be made sense of may raise what it likes."""

    def pids(self) -> Iterable[int]:
        """Return processes of the engine on this machine, as of the last reading."""
        return ()

    def close(self) -> None:  # noqa: B027
        """Let go of connections."""

    def _cpu_time(self, operators: Iterable[Operator]) -> dict[str, float]:
        """Return seconds that an operator's threads have run as its own; they never go back."""
        before, self._thread_ns = self._thread_ns, {}
        found = {}
        for operator in operators:
            known = operator.name in self._cpu_s
            ran_ns = 0
            for thread in operator.threads:
                now_ns = self._thread_ns[thread] = thread_cpu_ns(thread)
                # A thread of a pool has worked for others before it was first seen here.
                ran_ns += now_ns - before.get(thread, now_ns if known else 0)
            self._cpu_s[operator.name] = self._cpu_s.get(operator.name, 0.0) + ran_ns / 1e9
            found[operator.name] = self._cpu_s[operator.name]
        for name in self._cpu_s.keys() - found.keys():
            del self._cpu_s[name]
        return found


def _finite(values: Values) -> Values:
    """Drop what is no number: it is not known."""
    return {name: value for name, value in values.items() if math.isfinite(value)}
