"""`slackwater fleet` in a folder of its own, as a benchmark runs it."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from slackwater.common.files import replace_text
from slackwater.common.procfs import all_processes, descendants
from slackwater.common.subprocesses import child_environment
from slackwater.core.errors import EngineError
from slackwater_bench.quality.results import FleetSample

END_LIMIT_S = 90.0
STATUS = "status"


class FleetRun:
    """Started when it is made; call :meth:`end` whatever happens."""

    def __init__(self, folder: Path, file: str) -> None:
        self._folder = folder
        self._env = child_environment(SLACKWATER_RUNTIME_DIR=str(folder))
        self._processes: list[subprocess.Popen[bytes]] = []
        self.write(file)
        self.command("fleet", "--watch", STATUS)

    def write(self, file: str) -> None:
        """Replace the fleet file at once."""
        replace_text(self._folder / "fleet.toml", file)

    def command(self, *words: str) -> None:
        """Start another process of the fleet."""
        with (self._folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "slackwater.cli", *words],
                    cwd=self._folder,
                    env=self._env,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def check(self) -> None:
        """Check that it still runs."""
        if self._processes[0].poll() is not None:
            raise EngineError(f"the fleet ended: {self.log()}")

    def samples(self, start_s: float) -> list[FleetSample]:
        """Return what its supervisor saw, second by second; times count from ``start_s``."""
        found = []
        for line in (self._folder / STATUS).read_text().splitlines():
            sample: FleetSample = json.loads(line)
            for entry in (sample, *sample["events"]):
                entry["at_s"] = round(entry["at_s"] - start_s, 2)
            found.append(sample)
        return found

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self._processes:
            try:
                process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                for pid in descendants(process.pid, all_processes()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)

    def log(self) -> str:
        """Return its last line."""
        lines = (self._folder / "log").read_text().splitlines()
        return lines[-1] if lines else "without a word"


def section(name: str, values: Mapping[str, Any]) -> str:
    """Write a section of a fleet file.

    >>> print(section("queries.a", {"workers": ["w1"], "priority": 2.0}), end="")
    [queries.a]
    workers = ["w1"]
    priority = 2.0
    """
    return "".join([f"[{name}]\n", *(f"{key} = {toml(each)}\n" for key, each in values.items())])


def toml(value: Any) -> str:
    """Write a value as TOML.

    >>> toml({"a": [1, "x"], "b": True})
    '{ a = [1, "x"], b = true }'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(toml(each) for each in value) + "]"
    return json.dumps(value)
