"""One trial of a benchmark: its settings in a dataclass, run in a process of its own.

``python -m slackwater_bench.trial module:Class OUT`` reads the settings as JSON from standard
input, runs them and writes the result as JSON, so that every trial has a fresh JVM and leaves
nothing behind.
"""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar

from slackwater.common.plugins import load_object
from slackwater.core.errors import EngineError

Result = dict[str, Any]  # as it goes to JSON

OUT_OF_MEMORY = "java.lang.OutOfMemoryError"


class Trial:
    """Base of every trial.

    A member is a frozen dataclass whose fields JSON can carry; it is light to import and names
    the function that does the work.
    """

    runner: ClassVar[str]  # module:function, from the trial to its result
    arm_field: ClassVar[str] = "arm"  # what is tried
    seconds: float  # measured
    around_s: ClassVar[float] = 30.0  # starting and stopping, at a guess
    patience_s: ClassVar[float] = 600.0  # beyond what is expected, until it is given up

    @property
    def label(self) -> str:
        """Say what is tried, for messages."""
        return str(getattr(self, self.arm_field))

    @property
    def expected_s(self) -> float:
        """Guess how long it takes, for the time that is left."""
        return self.around_s + self.seconds

    @property
    def limit_s(self) -> float:
        """Return the time after which it is given up."""
        return self.expected_s + self.patience_s

    def run(self) -> Result:
        """Run it in this process."""
        result: Result = load_object(self.runner)(self)
        return result

    def to_json(self) -> Result:
        """Return the fields as they read from a file."""
        found: Result = json.loads(json.dumps(asdict(self)))  # type: ignore[call-overload]
        return found


def run_in_process(trial: Trial) -> Result:
    """Run a trial in a process of its own; if it fails, what it said last tells why."""
    name, limit_s = f"a trial of {trial.label}", trial.limit_s
    kind = f"{type(trial).__module__}:{type(trial).__qualname__}"
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        with (Path(folder) / "log").open("w+") as log:
            try:
                done = subprocess.run(
                    [sys.executable, "-m", "slackwater_bench.trial", kind, str(out)],
                    input=json.dumps(trial.to_json()),
                    text=True,
                    stdout=log,
                    stderr=log,
                    timeout=limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise EngineError(f"{name} did not end in {limit_s:.0f} s") from None
            if done.returncode != 0 or not out.exists():
                log.seek(0)
                reason = _reason(log.read()) or f"status {done.returncode}"
                raise EngineError(f"{name} failed: {reason}")
        result: Result = json.loads(out.read_text())
        return result


def _reason(log: str) -> str:
    """Return the last line; but a JVM without memory takes much down with it that says more.

    >>> _reason("java.lang.OutOfMemoryError: Java heap space\\n\\tat X\\nConnection refused\\n")
    'java.lang.OutOfMemoryError: Java heap space'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    first = next((line for line in lines if OUT_OF_MEMORY in line), None)
    if first is not None:
        return first[first.index(OUT_OF_MEMORY) :]
    return lines[-1] if lines else ""


def main() -> None:
    """Run the trial of standard input."""
    kind, out = sys.argv[1:]
    trial: Trial = load_object(kind)(**json.load(sys.stdin))
    Path(out).write_text(json.dumps(trial.run()))


if __name__ == "__main__":
    main()
