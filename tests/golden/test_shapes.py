"""Key paths and types of the JSON that commands write and the page reads."""

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from slackwater.core import VirtualClock
from slackwater.enforce.journal import Journal
from slackwater.ipc.questions import Ask
from slackwater.operations import recording
from slackwater.operations.dashboard.command import look
from slackwater.operations.middleware.file import MiddlewareFile
from slackwater.operations.middleware.loop import Middleware
from slackwater.operations.planning import Planned, Planner, plan
from slackwater_bench.klink.comparison import compare
from slackwater_bench.klink.trial import PolicyTrial
from slackwater_bench.rivals import arms
from slackwater_bench.simulate import experiments
from tests.golden.comparing import compare_shape
from tests.golden.scripted import SPECS, ScriptedController, told


def quiet(line: str) -> None:
    """Say nothing."""


@pytest.fixture
def socket(controller: ScriptedController, clock: VirtualClock) -> Iterator[Path]:
    """Of a controller that has heard the script and answers whoever asks."""
    for _ in told(controller):
        pass
    stop = threading.Event()
    thread = threading.Thread(target=controller.run, args=(stop.is_set,))
    thread.start()
    yield controller.path
    stop.set()
    clock.advance_to(clock.now() + 10)  # it waits for a second to pass
    thread.join()


@pytest.mark.parametrize("what", ["status", "decisions", "watch"])
def test_answers_of_the_controller(controller: ScriptedController, what: str) -> None:
    for _ in told(controller):
        pass
    (line,) = controller.say(6.5, Ask(what))
    named = (".outlook", ".notes")
    compare_shape(f"shapes/controller-{what}.txt", json.loads(line)["value"], *named)


def test_status_of_the_page(socket: Path) -> None:
    compare_shape("shapes/status.txt", msgspec.to_builtins(look([socket])))


def test_a_recording(socket: Path, tmp_path: Path) -> None:
    recording.record(socket, tmp_path / "run.jsonl", lambda: True, quiet)
    first, *_ = (tmp_path / "run.jsonl").read_text().splitlines()
    compare_shape("shapes/recorded-status.txt", json.loads(first))


def test_a_middleware(tmp_path: Path) -> None:
    file = MiddlewareFile(
        name="golden",
        engines={"e": {"driver": "process", "operators": {"worker": {"pid": os.getpid()}}}},
        policies={"p": {"policy": "random-order"}},
    )
    middleware = Middleware(file, Journal(tmp_path / "journal"), quiet, dry_run=True)
    compare_shape("shapes/middleware.txt", middleware.status(), ".engines", ".policies")
    middleware.close()


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        (
            "latency",
            {"queries": (2, 3), "seconds": 8, "cores": (2,), "policies": ("fcfs", "klink")},
        ),
        ("resources", {"queries": (2,), "seconds": 30, "cores": (2,), "policies": ("klink",)}),
        ("levels", {"seconds": 6}),
        ("mixed", {"queries": (9,), "seconds": 12, "cores": (2,), "policies": ("klink",)}),
    ],
)
def test_an_experiment(name: str, changes: dict[str, Any]) -> None:
    experiment = experiments.load(name)
    result = experiment.run(experiment.settings(**changes), quiet)
    compare_shape(f"shapes/simulate-{name}.txt", result, ".panels[].series")


def test_a_comparison() -> None:
    """Of trials that say what they say; nothing runs."""

    def run(trial: PolicyTrial) -> dict[str, Any]:
        return {
            "latency_s": dict.fromkeys(("mean", "p50", "p90", "p99", "max"), 1.0),
            "latencies_s": [1.0, 1.0],
            "windows": {"expected": 2, "emitted": 2, "wrong": 0},
            "throughput_eps": 10.0,
            "batches": 4,
            "wasted": 1,
            "cpu_s": 2.0,
            "controller_cpu_s": 0.1,
            "drained": True,
        }

    chosen = arms(["spark-trigger:0.5", "klink"], PolicyTrial("", seconds=20, seed=5))
    compare_shape("shapes/bench.txt", compare(chosen, [4, 8], 2, run=run))


def test_a_plan() -> None:
    queries = [Planned(name, SPECS[0].deadlines, rate=100.0) for name in ("first", "second")]
    compare_shape("shapes/plan.txt", plan(Planner(queries, "klink"), 1, 5.0, quiet))
