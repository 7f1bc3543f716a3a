"""`slackwater run` as a process of its own, whose driver may be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Self

from slackwater.common.subprocesses import child_environment


class DriverProcess:
    """The driver, its JVM and all Python processes; whatever happens, they end with the block.

    Parameters
    ----------
    folder
        That has the fleet file.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def start(self) -> None:
        """Start it with the code that this process has, wherever it was installed from."""
        paths = child_environment()["PYTHONPATH"]
        self._start([sys.executable, "-m", "slackwater.cli", "run"], PYTHONPATH=paths)

    def _start(self, command: Sequence[str], **environment: str) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env=self.environment | environment,
                start_new_session=True,
            )

    @property
    def environment(self) -> dict[str, str]:
        """Of this process, but that its sockets are in the folder."""
        return os.environ | {"SLACKWATER_RUNTIME_DIR": str(self.folder)}

    def kill(self) -> None:
        """-9 for the whole group."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()

    def runs(self) -> bool:
        """Fail if it does not."""
        assert self.process is not None
        assert self.process.poll() is None, self.log()
        return True

    def log(self) -> str:
        return (self.folder / "log").read_text()
