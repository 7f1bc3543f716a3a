"""What outlives a supervisor: which worker processes there are."""

import contextlib
import json
import os
import signal
from dataclasses import asdict, dataclass
from pathlib import Path

from slackwater.common.files import replace_text
from slackwater.common.procfs import all_processes, read_stat
from slackwater.core.clock import Deadline

GONE_LIMIT_S = 10.0


@dataclass(frozen=True)
class WorkerProcess:
    """A process that leads a group of its own; start time and pid name it for good."""

    pid: int
    started: int  # ticks since boot

    @property
    def alive(self) -> bool:
        stat = read_stat(self.pid)
        return stat is not None and stat.started == self.started and not stat.zombie

    def has_gone(self) -> bool:
        """Tell whether it is no longer alive."""
        return not self.alive

    def end_group(self) -> None:
        """Kill all that the worker has left behind (Spark's JVM, Python), and see it gone."""
        stat = read_stat(self.pid)
        if stat is not None and stat.started != self.started:
            return  # its number is another's by now, so nothing of its group is left
        Deadline(GONE_LIMIT_S).wait_for(self._group_has_gone, every_s=0.05)

    def _group_has_gone(self) -> bool:
        """Kill what runs of the group; return whether nothing did. Zombies do not run."""
        if not any(s.group == self.pid and not s.zombie for s in all_processes().values()):
            return True
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)
        return False


class WorkerProcesses:
    """The worker processes, in a file that is replaced at once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.by_name: dict[str, WorkerProcess] = {}
        try:
            found = json.loads(path.read_text())
            self.by_name = {name: WorkerProcess(**each) for name, each in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            pass  # none before us, or nothing that can be believed

    def add(self, name: str, pid: int) -> None:
        stat = read_stat(pid)
        if stat is not None:
            self.by_name[name] = WorkerProcess(pid, stat.started)
            self._write()

    def remove(self, name: str) -> None:
        if self.by_name.pop(name, None) is not None:
            self._write()

    def _write(self) -> None:
        entries = {name: asdict(process) for name, process in self.by_name.items()}
        replace_text(self._path, json.dumps(entries))
