"""The arms of a run take turns on engines that go on running."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slackwater.core.errors import EngineError
from slackwater_bench.flink import Host
from slackwater_bench.lachesis.sampling import Onlooker, watch
from slackwater_bench.lachesis.settings import OS, LachesisSettings
from slackwater_bench.lachesis.started import Section, Started, engines

Show = Callable[[str], None]


def compare(
    settings: LachesisSettings, show: Show, keep: Callable[[dict[str, Any]], None]
) -> dict[str, Any]:
    """Every arm in every round; every second round goes backwards, so that drift cancels out."""
    result: dict[str, Any] = {"settings": asdict(settings), "runs": []}
    with (
        tempfile.TemporaryDirectory() as folder,
        engines(settings, Path(folder), show) as started,
    ):
        onlookers = [
            Onlooker(name, engine.sections, engine.tallies) for name, engine in started.items()
        ]
        show("warming up")
        watch(onlookers, settings.warmup_s, settings.warmup_s)
        for number in range(settings.rounds):
            arms = settings.arms if number % 2 == 0 else settings.arms[::-1]
            for arm in arms:
                show(f"round {number + 1} of {settings.rounds}: {arm}")
                result["runs"].append(_slice(settings, arm, number, started, onlookers))
                keep(result)
    return result


def _slice(
    settings: LachesisSettings,
    arm: str,
    number: int,
    started: dict[str, Started],
    onlookers: list[Onlooker],
) -> dict[str, Any]:
    sections = {name: engine.sections for name, engine in started.items()}
    hosts = dict.fromkeys(host for each in started.values() for host in each.hosts)
    for engine in started.values():
        engine.empty()  # what one arm left over is no load of the next
    with ExitStack() as stack:
        statuses = [
            stack.enter_context(_middleware(settings, arm, sections, host)) for host in hosts
        ]
        watch(onlookers, settings.slice_s, settings.settle_s)
    return {
        "arm": arm,
        "round": number,
        "engines": {onlooker.name: onlooker.samples.result() for onlooker in onlookers},
        "middleware": together(statuses),
    }


def together(statuses: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of the middleware on the first node, with the CPU time and messages of all.

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
    """The middleware as users run it, a process of its own; ``status`` is filled at the end."""
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
    """The middleware's file for an arm: the policy for each engine by itself, because a row of one
    is not a row of another.

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
