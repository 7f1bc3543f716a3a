"""A trial in a process of its own."""

import json
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slackwater.bench.trial import DRAIN_LIMIT_S, START_LIMIT_S, Trial
from slackwater.core.errors import EngineError


def run_apart(trial: Trial) -> dict[str, Any]:
    """Run it with a fresh JVM; if it fails, the last line that it said is the error."""
    limit_s = 120 + START_LIMIT_S + trial.warmup_s + trial.seconds + DRAIN_LIMIT_S
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "result.json"
        command = [sys.executable, "-m", "slackwater.bench.trial", str(out)]
        with (Path(folder) / "log").open("w+") as log:
            try:
                done = subprocess.run(
                    command,
                    input=json.dumps(asdict(trial)),
                    text=True,
                    stdout=log,
                    stderr=log,
                    timeout=limit_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise EngineError(
                    f"a trial of {trial.policy} did not end in {limit_s:.0f} s"
                ) from None
            if done.returncode != 0 or not out.exists():
                log.seek(0)
                lines = [line.strip() for line in log if line.strip()]
                reason = lines[-1] if lines else f"status {done.returncode}"
                raise EngineError(f"a trial of {trial.policy} failed: {reason}")
        result: dict[str, Any] = json.loads(out.read_text())
        return result
