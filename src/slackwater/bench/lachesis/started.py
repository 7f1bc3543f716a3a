"""Engines with their queries, started for a run."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from typing import Any

from slackwater.bench.lachesis.settings import LachesisSettings
from slackwater.core.errors import EngineError
from slackwater.engines.flink import LocalFlink, SqlClient
from slackwater.workloads.flink import choose

Section = dict[str, Any]  # of an engine, as the middleware's file has it


@contextmanager
def engines(
    settings: LachesisSettings, show: Callable[[str], None]
) -> Iterator[dict[str, Section]]:
    """The engines that a run needs, by name."""
    with ExitStack() as stack:
        found = {}
        if settings.engine in ("flink", "both"):
            found["flink"] = stack.enter_context(_flink(settings, show))
        if settings.engine in ("spark", "both"):
            found["spark"] = stack.enter_context(_spark(settings, show))
        yield found


@contextmanager
def _flink(settings: LachesisSettings, show: Callable[[str], None]) -> Iterator[Section]:
    show("starting Flink")
    with LocalFlink(slots=settings.queries, conf=settings.flink_conf) as flink:
        with SqlClient(flink.rest) as client:
            for number in range(settings.queries):
                show(f"submitting query {number + 1} of {settings.queries} to Flink")
                name, statements = choose(settings.workload)(
                    number, settings.rate_of(number), settings.seed, settings.work
                )
                client.submit(name, statements)
        yield {"driver": "flink", "rest": flink.rest, "prometheus": flink.prometheus}


@contextmanager
def _spark(settings: LachesisSettings, show: Callable[[str], None]) -> Iterator[Section]:
    show("starting Spark")
    process = subprocess.Popen(
        [sys.executable, "-m", "slackwater.bench.lachesis.spark_application"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        process.stdin.write(json.dumps(asdict(settings)) + "\n")
        process.stdin.flush()
        line = process.stdout.readline()
        if not line:
            raise EngineError("Spark did not start its queries")
        yield {"driver": "spark", "rest": f"http://127.0.0.1:{json.loads(line)['port']}"}
    finally:
        process.stdin.close()
        try:
            process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
