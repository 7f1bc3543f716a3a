"""A trial in a process of its own."""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slackwater.core.errors import EngineError
from slackwater_bench.trial import DRAIN_LIMIT_S, START_LIMIT_S, Trial

OUT_OF_MEMORY = "java.lang.OutOfMemoryError"


def run_apart(trial: Trial) -> dict[str, Any]:
    """Run it with a fresh JVM; if it fails, what it said last tells why."""
    limit_s = 120 + START_LIMIT_S + trial.warmup_s + trial.seconds + DRAIN_LIMIT_S
    name = f"a trial of {trial.policy}"
    return run_in_process("slackwater_bench.trial", asdict(trial), name, limit_s)


def run_in_process(module: str, trial: dict[str, Any], name: str, limit_s: float) -> dict[str, Any]:
    """What ``python -m module OUT`` writes to OUT when it gets a trial on standard input."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", module, str(out)]
        with (Path(folder) / "log").open("w+") as log:
            try:
                done = subprocess.run(
                    command,
                    input=json.dumps(trial),
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
        result: dict[str, Any] = json.loads(out.read_text())
        return result


def _reason(log: str) -> str:
    """The last line; but a JVM that ran out of memory takes much down with it that says more.

    >>> _reason("java.lang.OutOfMemoryError: Java heap space\\n\\tat X\\nConnection refused\\n")
    'java.lang.OutOfMemoryError: Java heap space'
    """
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    first = next((line for line in lines if OUT_OF_MEMORY in line), None)
    if first is not None:
        return first[first.index(OUT_OF_MEMORY) :]
    return lines[-1] if lines else ""
