"""Engines with their queries, started for a run."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from slackwater.core.errors import EngineError
from slackwater_bench.flink import Host, LocalFlink, SqlClient, two_nodes
from slackwater_bench.lachesis.settings import LachesisSettings
from slackwater_bench.workloads.flink_sql import flink_query

Section = dict[str, Any]  # as the middleware's file has it


@dataclass(frozen=True)
class RunningEngine:
    """An engine with its queries: one process that the middleware knows, or several."""

    sections: dict[str, Section]  # by the label of each
    tallies: tuple[Path, ...] = ()  # where applications write what their queries have done
    hosts: tuple[Host, ...] = (Host(),)
    empty: Callable[[], None] = lambda: None  # its queues, as far as they have no end


@contextmanager
def engines(
    settings: LachesisSettings, folder: Path, show: Callable[[str], None]
) -> Iterator[dict[str, RunningEngine]]:
    """Start the engines that a run needs, by name."""
    with ExitStack() as stack:
        found = {}
        if settings.engine in ("flink", "both"):
            found["flink"] = stack.enter_context(_flink(settings, show))
        if settings.engine in ("spark", "both"):
            found["spark"] = stack.enter_context(_spark(settings, folder, show))
        yield found


@contextmanager
def _flink(settings: LachesisSettings, show: Callable[[str], None]) -> Iterator[RunningEngine]:
    show("starting Flink")
    with ExitStack() as stack:
        hosts = stack.enter_context(two_nodes()) if settings.nodes == 2 else (Host(),)
        flink = stack.enter_context(
            LocalFlink(slots=settings.queries, conf=settings.flink_conf, hosts=hosts)
        )
        with SqlClient(flink.rest) as client:
            for number in range(settings.queries):
                show(f"submitting query {number + 1} of {settings.queries} to Flink")
                rate = settings.rate_of(number)
                name, statements = flink_query(
                    settings.workload, number, rate, settings.seed, settings.work
                )
                client.submit(name, statements, {"parallelism.default": str(settings.nodes)})
        section = {"driver": "flink", "rest": flink.rest, "prometheus": flink.prometheus}
        yield RunningEngine({"flink": section}, hosts=hosts)


@contextmanager
def _spark(
    settings: LachesisSettings, folder: Path, show: Callable[[str], None]
) -> Iterator[RunningEngine]:
    every = range(settings.queries)
    apart = {f"spark-{number}": [number] for number in every}
    groups = apart if settings.apart else {"spark": list(every)}
    tallies = {label: folder / f"{label}.json" for label in groups}
    with ExitStack() as stack:
        sections, applications = {}, []
        for label, numbers in groups.items():
            show(f"starting {label}")
            started = _application(settings, numbers, tallies[label])
            sections[label], application = stack.enter_context(started)
            applications.append(application)

        def empty() -> None:
            for each in applications:
                each.ask("anew")
            for each in applications:
                each.answer()

        yield RunningEngine(sections, tuple(tallies.values()), empty=empty)


class _Application:
    """The other end of a Spark application's standard input and output."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process

    def ask(self, line: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise EngineError("Spark did not start its queries")
        return line

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def _application(
    settings: LachesisSettings, numbers: Sequence[int], tally: Path
) -> Iterator[tuple[Section, _Application]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "slackwater_bench.lachesis.spark_application"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    application = _Application(process)
    try:
        wanted = {"settings": asdict(settings), "numbers": numbers, "tally": str(tally)}
        application.ask(json.dumps(wanted))
        rest = f"http://127.0.0.1:{json.loads(application.answer())['port']}"
        yield {"driver": "spark", "rest": rest, "whole": settings.apart}, application
    finally:
        application.end()
