"""Any process, with metrics from a command."""

import json
import os
import shlex

import pytest

from slackwater.core.errors import EngineError, UsageError
from slackwater.engines import outside
from slackwater.engines.outside import process
from slackwater.metrics import MetricProvider
from tests.busy_process import idle_process


def printing(value: object) -> str:
    return shlex.join(["echo", json.dumps(value)])


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "ANSWER_LIMIT_S", 60.0)


def test_threads_by_process_and_metrics_by_command() -> None:
    with idle_process(2) as busy:
        driver = outside.load(
            "process",
            label="engine",
            operators={"parse": {"pid": busy.process.pid, "query": "q"}},
            metrics=printing({"queue-size": {"parse": 12}}),
            provides=["queue-size"],
        )
        reading = driver.read(0.0)
        (operator,) = reading.operators
        assert set(busy.threads) <= set(operator.threads)
        assert reading.metrics["queue-size"] == {"parse": 12.0}
        assert reading.metrics["cpu-time"]["parse"] > 0
        MetricProvider("engine", driver.provides, ["queue-size"])


def test_processes_by_their_command_line() -> None:
    with idle_process(1) as busy:
        driver = outside.load(
            "process",
            operators={"x": {"command": rf"busy_process\.py idle 1 of-{os.getpid()}$"}},
        )
        driver.read(0.0)
        assert list(driver.pids()) == [busy.process.pid]


@pytest.mark.parametrize(
    ("printed", "message"),
    [
        ("nonsense", "nonsense"),
        ({"queue-size": {"x": "many"}}, "answers nonsense"),
        ({"queue-size": {"x": float("nan")}}, "no finite number"),
    ],
)
def test_a_command_that_prints_nonsense_is_the_engines_error(printed: object, message: str) -> None:
    with idle_process(1) as busy:
        operators = {"x": {"pid": busy.process.pid}}
        driver = outside.load("process", operators=operators, metrics=printing(printed))
        with pytest.raises(EngineError, match=message):
            driver.read(0.0)


@pytest.mark.parametrize(
    ("operators", "message"),
    [
        (None, "at least one operator"),
        ({"x": {}}, "give either command or pid"),
        ({"x": {"command": "("}}, "not a regular expression"),
        ({"x": {"pid": 1, "nice": 3}}, "unknown key 'nice'"),
        ({"x": {"pid": 1, "downstream": ["y"]}}, "no operator named 'y'; these are: x"),
    ],
)
def test_wrong_operators_are_one_clear_line(operators: object, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        outside.load("process", operators=operators)


def test_no_process_is_the_engines_error() -> None:
    driver = outside.load("process", operators={"x": {"command": "no such program runs here"}})
    with pytest.raises(EngineError, match="no process matches"):
        driver.read(0.0)
