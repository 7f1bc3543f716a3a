"""The threads of one JVM by name, asked for again only when there are new ones."""

import os

from slackwater.common.procfs import find_thread, is_alive, threads_of
from slackwater.core.entities import Thread
from slackwater.core.errors import EngineError
from slackwater.engines.outside import attach


class JvmThreads:
    """Remembers names; a thread dump stops the JVM for a moment, so it is not taken for nothing.

    Parameters
    ----------
    pid
        Of the JVM.
    renames
        Whether threads change their names, as Spark's task threads do: then every look is new.
    """

    def __init__(self, pid: int, renames: bool = False) -> None:
        self.pid = pid
        self.process = find_thread(pid)  # tells it from a later one with the same number
        self._renames = renames
        self._names: dict[Thread, str] = {}

    @property
    def alive(self) -> bool:
        return self.process is not None and is_alive(self.process)

    def read(self) -> dict[Thread, str]:
        """Return all threads that have a name in Java."""
        try:
            present = {int(name) for name in os.listdir(f"/proc/{self.pid}/task")}
        except OSError as error:
            raise EngineError(f"the JVM {self.pid} has gone") from error
        if self._renames or not present <= {thread.tid for thread in self._names}:
            threads = list(threads_of(self.pid))  # first: who comes after it is asked for later
            names = attach.thread_names(self.pid)
            self._names = {thread: names.get(thread.tid, "") for thread in threads}
        return {t: name for t, name in self._names.items() if name and t.tid in present}
