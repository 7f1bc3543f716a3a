"""The three scenarios of the Stream-Economics evaluation, on real workers of one core each.

1. Taxi Drives alone, all priorities the same; the second worker comes later.
2. Taxi Drives with different priorities; K nearest neighbours arrives later, with the lowest.
3. K nearest neighbours with two instances whose source changes its rate.

The load goes up and down in steps, as a multiple of a rate that is given.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from rich.table import Table

from slackwater.core.errors import EngineError, UsageError

STARTING_S = 60.0  # that queries have to start before the traffic begins
END_LIMIT_S = 90.0
PIPELINES = "slackwater.workloads.taxi_drives"

Show = Callable[[str], None]


@dataclass
class Scenario:
    """Queries, and what happens when; times count from the beginning of the traffic."""

    queries: dict[str, dict[str, Any]]
    seconds: float
    later: dict[str, float] = field(default_factory=dict)  # queries that arrive at a time
    late_workers: dict[str, float] = field(default_factory=dict)


def scenario(number: int, rate: float, references: int, start_s: float, folder: Path) -> Scenario:
    """One of the three."""
    steps = ((0, 0.3), (60, 0.8), (120, 1.6), (180, 0.8), (240, 0.3))
    text = "steps:" + ",".join(f"{at_s}={rate * part:g}" for at_s, part in steps)
    arguments = {"rate": text, "start": start_s, "seed": 7, "references": references}
    knn = {"query": f"{PIPELINES}:knn", "arguments": arguments, "min_accuracy": 0.1}
    if number == 1:
        drives = _taxi_drives(folder, text, references, start_s, first=1.0, second=1.0)
        return Scenario(drives, 300, late_workers={"tm2": 90.0})
    if number == 2:
        drives = _taxi_drives(folder, text, references, start_s, first=2.0, second=3.0)
        return Scenario({**drives, "knn": {**knn, "priority": 1.0}}, 300, later={"knn": 60.0})
    if number == 3:
        instances = {}
        for place in (0, 1):
            half = {**arguments, "seed": 7 + place}  # each reads a partition of its own
            instances[f"knn-{place}"] = {**knn, "arguments": half, "task": "knn"}
        return Scenario(instances, 300)
    raise UsageError(f"there are scenarios 1, 2 and 3, not {number}")


def measure(
    number: int, rate: float, references: int, show: Show, seconds: float | None = None
) -> dict[str, Any]:
    """Run it through `slackwater fleet`, and say what was seen second by second."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        start_s = float(int(time.time() + STARTING_S))
        plan = scenario(number, rate, references, start_s, folder)
        run = _Run(folder, plan, start_s, show)
        try:
            run.play(seconds or plan.seconds)
        finally:
            run.end()
        samples = run.samples()
    return {"scenario": number, "rate": rate, "samples": samples, "checks": checks(plan, samples)}


class _Run:
    """One fleet in a folder of its own."""

    def __init__(self, folder: Path, plan: Scenario, start_s: float, show: Show) -> None:
        self._folder = folder
        self._plan = plan
        self._start_s = start_s
        self._show = show
        self._env = os.environ | {
            "SLACKWATER_RUNTIME_DIR": str(folder),
            "PYTHONPATH": os.pathsep.join(part for part in sys.path if part),
        }
        self._processes: list[subprocess.Popen[bytes]] = []
        self._write([name for name in plan.queries if name not in plan.later])
        self._command("fleet", "--watch", str(folder / "status"))

    def play(self, seconds: float) -> None:
        due = [(at_s, "query", name) for name, at_s in self._plan.later.items()]
        due += [(at_s, "worker", name) for name, at_s in self._plan.late_workers.items()]
        present = [name for name in self._plan.queries if name not in self._plan.later]
        until_s = self._start_s + seconds
        while (now_s := time.time()) < until_s:
            self._show(f"{now_s - self._start_s:.0f} of {seconds:.0f} s")
            for event in [each for each in due if now_s >= self._start_s + each[0]]:
                due.remove(event)
                _, kind, name = event
                if kind == "worker":
                    self._command("worker", name)
                else:
                    present.append(name)
                    self._write(present)
            if self._processes[0].poll() is not None:
                raise EngineError(f"the fleet ended: {self._log()}")
            time.sleep(1.0)

    def end(self) -> None:
        for process in self._processes:
            if process.poll() is None:
                process.send_signal(signal.SIGINT)
        for process in self._processes:
            try:
                process.wait(END_LIMIT_S)
            except subprocess.TimeoutExpired:
                for each in psutil.Process(process.pid).children(recursive=True):
                    each.kill()
                process.kill()

    def samples(self) -> list[dict[str, Any]]:
        found = []
        for line in (self._folder / "status").read_text().splitlines():
            sample = json.loads(line)
            sample["at_s"] = round(sample["at_s"] - self._start_s, 2)
            found.append(sample)
        return found

    def _command(self, *words: str) -> None:
        with (self._folder / "log").open("ab") as log:
            self._processes.append(
                subprocess.Popen(
                    [sys.executable, "-m", "slackwater.cli", *words],
                    cwd=self._folder,
                    env=self._env,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                )
            )

    def _write(self, names: list[str]) -> None:
        """The fleet file, replaced at once."""
        lines = ["name = 'scenario'", "policy = 'fcfs'", "[quality]", "patience = 3"]
        for place, worker in enumerate(("tm1", "tm2")):
            remote = str(worker in self._plan.late_workers).lower()
            lines += [f"[workers.{worker}]", f"cpus = [{place}]", f"remote = {remote}"]
        for name in names:
            lines += [f"[queries.{name}]"]
            lines += [f"{key} = {_toml(value)}" for key, value in self._plan.queries[name].items()]
        draft = self._folder / "fleet.new"
        draft.write_text("\n".join(lines) + "\n")
        os.replace(draft, self._folder / "fleet.toml")

    def _log(self) -> str:
        lines = (self._folder / "log").read_text().splitlines()
        return lines[-1] if lines else "without a word"


def checks(plan: Scenario, samples: list[dict[str, Any]]) -> dict[str, Any]:
    """What the paper promises, seen in the samples."""
    least = {name: query.get("min_accuracy", 1.0) for name, query in plan.queries.items()}
    below, moves = 0, 0
    for sample in samples:
        for row in sample["queries"]:
            accuracy = row["accuracy"]
            if row["phase"] == "running" and accuracy is not None:
                below += accuracy["desired"] < least[row["query"]] - 0.01
            moves = max(moves, row["moves"])
    last = [
        row["accuracy"]["desired"]
        for row in (samples[-1]["queries"] if samples else [])
        if row["accuracy"] is not None
    ]
    return {
        "looks_below_minimum": below,
        "most_moves_of_a_query": moves,
        "accuracy_at_the_end": min(last, default=None),
    }


def table(result: dict[str, Any]) -> Table:
    title = f"scenario {result['scenario']}, {result['rate']:g} rows/s at 1"
    grid = Table(title=title, title_justify="left")
    grid.add_column("seconds", justify="right")
    names = [row["query"] for row in result["samples"][-1]["queries"]] if result["samples"] else []
    for name in names:
        grid.add_column(name, justify="right")
    for sample in result["samples"][::15]:
        if sample["at_s"] < 0:
            continue
        rows = {row["query"]: row for row in sample["queries"]}
        grid.add_row(f"{sample['at_s']:.0f}", *(_cell(rows.get(name)) for name in names))
    return grid


def _cell(row: dict[str, Any] | None) -> str:
    """Desired and delivered accuracy, and where."""
    if row is None:
        return ""
    accuracy = row["accuracy"]
    if accuracy is None or accuracy["delivered"] is None:
        return row["phase"] if row["phase"] != "running" else f"{row['worker']}"
    return f"{row['worker']} {accuracy['desired']:.0%} / {accuracy['delivered']:.0%}"


def _taxi_drives(
    folder: Path, rate: str, references: int, start_s: float, first: float, second: float
) -> dict[str, dict[str, Any]]:
    logs = [str(folder / f"log{number}") for number in (1, 2)]
    found: dict[str, dict[str, Any]] = {}
    for number, log in enumerate(logs, start=1):
        found[f"src{number}"] = {
            "query": f"{PIPELINES}:source",
            "arguments": {"folder": log, "rate": rate, "start": start_s, "seed": number},
            "priority": max(first, second),
            "min_accuracy": 0.6,
        }
    reads = ["src1", "src2"]
    found["snk1"] = {
        "query": f"{PIPELINES}:sink",
        "arguments": {"folders": logs, "references": references},
        "priority": first,
        "min_accuracy": 0.4,
        "reads": reads,
    }
    for place in (0, 1):
        found[f"snk2-{place}"] = {
            "query": f"{PIPELINES}:sink",
            "arguments": {"folders": logs, "number": place, "of": 2, "references": references},
            "task": "snk2",
            "priority": second,
            "min_accuracy": 0.6,
            "reads": reads,
        }
    return found


def _toml(value: Any) -> str:
    """
    >>> _toml({"a": [1, "x"], "b": True})
    '{ a = [1, "x"], b = true }'
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(each) for each in value) + "]"
    return json.dumps(value)
