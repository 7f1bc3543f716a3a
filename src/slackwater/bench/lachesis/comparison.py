"""The arms of a run take turns on engines that go on running."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from slackwater.bench.lachesis.sampling import Onlooker, watch
from slackwater.bench.lachesis.settings import OS, LachesisSettings
from slackwater.bench.lachesis.started import Section, Started, engines
from slackwater.core.errors import EngineError

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
    sections = {
        label: section for each in started.values() for label, section in each.sections.items()
    }
    with _middleware(settings, arm, sections) as status:
        watch(onlookers, settings.slice_s, settings.settle_s)
    return {
        "arm": arm,
        "round": number,
        "engines": {onlooker.name: onlooker.samples.result() for onlooker in onlookers},
        "middleware": status,
    }


@contextmanager
def _middleware(
    settings: LachesisSettings, arm: str, sections: dict[str, Section]
) -> Iterator[dict[str, Any]]:
    """The middleware as users run it, a process of its own; ``status`` is filled at the end."""
    status: dict[str, Any] = {}
    if arm == OS:
        yield status
        return
    with tempfile.TemporaryDirectory() as folder:
        file, out = Path(folder) / "middleware.toml", Path(folder) / "status.json"
        file.write_text(configuration(settings, arm, sections))
        process = subprocess.Popen(
            [sys.executable, "-m", "slackwater.cli", "middleware", str(file), "--json", str(out)],
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


def configuration(settings: LachesisSettings, arm: str, sections: dict[str, Section]) -> str:
    """The middleware's file for an arm.

    >>> text = configuration(LachesisSettings(), "fcfs", {"f": {"driver": "flink", "rest": "x"}})
    >>> print(text.splitlines()[2])
    driver = "flink"
    """
    lines = [f'name = "bench-{os.getpid()}"']
    for name, section in sections.items():
        lines += [f"[engines.{name}]", *(f"{k} = {json.dumps(v)}" for k, v in section.items())]
    parameters = ", ".join(
        f"{key} = {json.dumps(value)}" for key, value in settings.translator_parameters.items()
    )
    lines += [
        "[policies.bench]",
        f"policy = {json.dumps(arm)}",
        f"translator = {json.dumps(settings.translator)}",
        f"translator_parameters = {{ {parameters} }}",
        f"period = {settings.period_s}",
        *([] if settings.scale is None else [f"scale = {json.dumps(settings.scale)}"]),
    ]
    return "\n".join(lines) + "\n"
