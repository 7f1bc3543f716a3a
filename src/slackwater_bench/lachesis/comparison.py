"""The arms of a run take turns on engines that go on running."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

from slackwater.core.errors import EngineError
from slackwater_bench.comparison import Comparison, Show, Step, turns
from slackwater_bench.flink import Host
from slackwater_bench.journal import Journal
from slackwater_bench.lachesis.engines import RunningEngine, Section, engines
from slackwater_bench.lachesis.observer import Observer, watch
from slackwater_bench.lachesis.settings import OS, LachesisSettings
from slackwater_bench.trial import Result, Trial


@dataclass(frozen=True)
class Slice(Trial):
    """One arm in one round, on engines that go on running."""

    around_s: ClassVar[float] = 3.0  # starting and stopping the middleware

    arm: str
    round: int
    seconds: float

    def to_json(self) -> Result:
        """Return what tells it from others; the settings are the same for all."""
        return {"arm": self.arm, "round": self.round}


def compare(settings: LachesisSettings, journal: Journal, show: Show = lambda line: None) -> Result:
    """Run every arm in every round; every second round goes backwards: drift cancels out."""
    slices = [
        Slice(arm, number, settings.slice_s)
        for number, arms in turns(settings.arms, settings.rounds)
        for arm in arms
    ]
    steps = [
        Step(each, each.to_json(), f"round {each.round + 1} of {settings.rounds}, {each.arm}")
        for each in slices
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        engines(settings, Path(folder), show) as running,
    ):
        observers = [
            Observer(name, engine.sections, engine.tallies) for name, engine in running.items()
        ]
        show("warming up")
        watch(observers, settings.warmup_s, settings.warmup_s)
        comparison = Comparison(
            {"settings": asdict(settings)},
            journal,
            show,
            lambda each: _measure(settings, each.arm, running, observers),
            tolerant=False,
        )
        comparison.expect("runs", steps)
        comparison.run("runs", steps)
    return comparison.result


def _measure(
    settings: LachesisSettings,
    arm: str,
    running: dict[str, RunningEngine],
    observers: list[Observer],
) -> Result:
    sections = {name: engine.sections for name, engine in running.items()}
    hosts = dict.fromkeys(host for each in running.values() for host in each.hosts)
    for engine in running.values():
        engine.empty()  # what one arm left over is no load of the next
    with ExitStack() as stack:
        statuses = [
            stack.enter_context(_middleware(settings, arm, sections, host)) for host in hosts
        ]
        watch(observers, settings.slice_s, settings.settle_s)
    return {
        "engines": {observer.name: observer.samples.result() for observer in observers},
        "middleware": together(statuses),
    }


def together(statuses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return what the middleware on the first node says, with the CPU time and messages of all.

    >>> together([{"cpu_share": 0.25, "said": ["a"]}, {"cpu_share": 0.5, "said": []}])
    {'cpu_share': 0.75, 'said': ['a']}
    >>> together([{}])
    {}
    """
    found = dict(statuses[0])
    if found:
        found["cpu_share"] = sum(status["cpu_share"] for status in statuses)
        found["said"] = [line for status in statuses for line in status["said"]]
    return found


@contextmanager
def _middleware(
    settings: LachesisSettings, arm: str, sections: dict[str, dict[str, Section]], host: Host
) -> Iterator[dict[str, Any]]:
    """Run the middleware as users do, in a process; the status is filled at the end."""
    status: dict[str, Any] = {}
    if arm == OS:
        yield status
        return
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "middleware.toml", Path(folder) / "status.json"
        name = f"bench-{os.getpid()}-{host.address.replace('.', '-')}"
        file.write_text(configuration(settings, arm, sections, name))
        own = [sys.executable, "-m", "slackwater.cli", "middleware", str(file), "--json", str(out)]
        process = subprocess.Popen(
            [*host.prefix, *own],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "SLACKWATER_RUNTIME_DIR": folder},
        )
        assert process.stdout is not None
        try:
            first = process.stdout.readline()  # it runs, or says why not
            yield status
        finally:
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
        said = first + said
        if process.returncode != 0 or not out.exists():
            raise EngineError(f"the middleware failed: {said.strip().splitlines()[-1:]}")
        status.update(json.loads(out.read_text()))
        status["said"] = [line for line in said.splitlines() if line.strip()]


def configuration(
    settings: LachesisSettings,
    arm: str,
    sections: dict[str, dict[str, Section]],
    name: str = "bench",
) -> str:
    """Write the middleware's file for an arm.

    Each engine has the policy for itself, because a row of one is not a row of another.

    >>> text = configuration(LachesisSettings(), "fcfs", {"f": {"f1": {"driver": "flink"}}})
    >>> print(text.splitlines()[2])
    driver = "flink"
    """
    lines = [f"name = {json.dumps(name)}"]
    for processes in sections.values():
        for label, section in processes.items():
            lines += [f"[engines.{label}]", *(f"{k} = {json.dumps(v)}" for k, v in section.items())]
    parameters = ", ".join(
        f"{key} = {json.dumps(value)}" for key, value in settings.translator_parameters.items()
    )
    for engine, processes in sections.items():
        lines += [
            f"[policies.{engine}]",
            f"policy = {json.dumps(arm)}",
            f"engines = {json.dumps(list(processes))}",
            f"translator = {json.dumps(settings.translator)}",
            f"translator_parameters = {{ {parameters} }}",
            f"period = {settings.period_s}",
            *([] if settings.scale is None else [f"scale = {json.dumps(settings.scale)}"]),
        ]
    return "\n".join(lines) + "\n"
