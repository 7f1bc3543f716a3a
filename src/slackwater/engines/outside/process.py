"""Any process or group of threads, with metrics from a command."""

import json
import math
import os
import re
import shlex
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from slackwater.common.procfs import (
    find_thread,
    is_alive,
    pids,
    read_stat,
    thread_name,
    threads_of,
)
from slackwater.core.entities import Operator, Reading, Thread
from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.outside.base import Driver

ANSWER_LIMIT_S = 2.0


@dataclass(frozen=True, slots=True)
class OperatorSection:
    """How an operator is found: by ``command`` or ``pid``, and by the names of its threads."""

    command: str = ""  # found in the process's command line
    pid: int | None = None
    threads: str = ""  # found in the thread's name, as the kernel has it
    query: str | None = None
    downstream: tuple[str, ...] = ()

    @classmethod
    def of(cls, where: str, how: Mapping[str, Any], names: Iterable[str]) -> "OperatorSection":
        """Read a section; refuse one that is wrong, saying ``where`` it is."""
        unknown = how.keys() - {field.name for field in fields(cls)}
        if unknown:
            raise UsageError(f"{where}: unknown key {sorted(unknown)[0]!r}")
        if ("command" in how) == ("pid" in how):
            raise UsageError(f"{where}: give either command or pid")
        strangers = [each for each in how.get("downstream", ()) if each not in names]
        if strangers:
            known = ", ".join(names)
            raise UsageError(
                f"{where}.downstream: no operator named {strangers[0]!r}; these are: {known}"
            )
        for key in ("command", "threads"):
            try:
                re.compile(how.get(key, ""))
            except re.error as error:
                raise UsageError(f"{where}.{key}: not a regular expression: {error}") from None
        return cls(**{**how, "downstream": tuple(how.get("downstream", ()))})


class Process(Driver):
    """Operators are told by regular expressions; metrics by what a command prints.

    Parameters
    ----------
    label
        The engine's name.
    operators
        For each operator ``command`` (found in the process's command line) or ``pid``, and where
        only some threads are meant ``threads`` (found in the thread's name, as the kernel has it);
        optional ``query`` and ``downstream`` (names).
    metrics
        A command that prints JSON, ``{"queue-size": {"parse": 12, …}, …}``.
    provides
        Names of the metrics that it prints.
    """

    name = "process"

    def __init__(
        self,
        label: str = "process",
        operators: Mapping[str, Mapping[str, Any]] | None = None,
        metrics: str = "",
        provides: Iterable[str] = (),
    ) -> None:
        super().__init__(label)
        if not operators:
            raise UsageError(f"{label}: name at least one operator ([engines.{label}.operators.X])")
        self._operators = {
            name: OperatorSection.of(f"engines.{label}.operators.{name}", how, operators)
            for name, how in operators.items()
        }
        try:
            self._metrics = shlex.split(metrics)
        except ValueError as error:
            raise UsageError(f"{label}: the command for metrics: {error}") from None
        self.provides = frozenset(provides) | {"cpu-time"}
        self._pids: set[int] = set()
        self._first: dict[int, Thread | None] = {}

    def _read(self, now_s: float) -> Reading:
        commands = dict(_command_lines())
        found, self._pids = [], set()
        for name, how in self._operators.items():
            pids = _matching(how.command, commands) if how.pid is None else self._still(how.pid)
            threads = tuple(t for pid in pids for t in _named(pid, how.threads))
            self._pids |= {thread.pid for thread in threads}
            found.append(
                Operator(
                    name,
                    self.label if how.query is None else how.query,
                    downstream=how.downstream,
                    threads=threads,
                )
            )
        if not any(operator.threads for operator in found):
            raise EngineError(f"{self.label}: no process matches")
        return Reading(now_s, tuple(found), self._printed())

    def pids(self) -> Iterable[int]:
        return self._pids

    def _still(self, pid: int) -> list[int]:
        """Return a process by its number, as long as it is the one that had it at first."""
        first = self._first.setdefault(pid, find_thread(pid))
        return [pid] if first is not None and is_alive(first) else []

    def _printed(self) -> dict[str, dict[str, float]]:
        if not self._metrics:
            return {}
        try:
            done = subprocess.run(
                self._metrics, capture_output=True, text=True, timeout=ANSWER_LIMIT_S, check=True
            )
            printed = json.loads(done.stdout)
        except (OSError, subprocess.SubprocessError, ValueError) as error:
            raise EngineError(f"{self.label}: the command for metrics fails ({error})") from error
        found = {
            str(metric): {str(name): float(value) for name, value in values.items()}
            for metric, values in printed.items()
        }
        if not all(math.isfinite(v) for values in found.values() for v in values.values()):
            raise EngineError(f"{self.label}: a metric is no finite number")
        return found


def _command_lines() -> Iterator[tuple[int, str]]:
    """Yield command lines of all processes but ours and those that started it.

    They name the engine too.
    """
    own = set(_lineage(os.getpid()))
    for pid in pids():
        if pid not in own:
            try:
                words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            yield pid, b" ".join(words).decode(errors="replace").strip()


def _lineage(pid: int) -> Iterator[int]:
    while pid > 0 and (stat := read_stat(pid)) is not None:
        yield pid
        pid = stat.parent


def _matching(pattern: str, commands: Mapping[int, str]) -> list[int]:
    return sorted(
        pid for pid, command in commands.items() if command and re.search(pattern, command)
    )


def _named(pid: int, pattern: str) -> Iterator[Thread]:
    return (thread for thread in threads_of(pid) if re.search(pattern, thread_name(thread)))
