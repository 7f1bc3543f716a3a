"""Which failures start a query again."""

from collections.abc import Callable
from typing import Any

import pytest

from slackwater.core import QuerySpec
from slackwater.engines.spark.queries import restarts
from slackwater.engines.spark.queries.failures import MAX_RESTARTS
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.restarts import Restarter
from tests.waiting import eventually

LOST = "org.apache.spark.SparkException: Python worker failed to connect back.\n\tat somewhere"


class Launcher:
    """Begins a new run each time; ``then`` is done with it."""

    def __init__(self, registry: Registry, then: Callable[[str], None]) -> None:
        self.registry = registry
        self.then = then
        self.runs = 0

    def start(self) -> None:
        writer: Any = object()
        draft = QueryRecord(QuerySpec("q"), "clock", writer=writer)
        self._begin(self.registry.expect(draft))

    def relaunch(self, record: QueryRecord) -> None:
        again, mark = self.registry.expect_again(record.name, born=record.born, when=record.state)
        if again is not None:
            self._begin(mark)
            self.then(f"run {self.runs}")

    def _begin(self, mark: str | None) -> None:
        self.runs += 1
        self.registry.begin(mark, "q", "id", f"run {self.runs}")


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Registry:
    monkeypatch.setattr(restarts, "PAUSE_S", 0.0)
    monkeypatch.setattr(Registry, "strict", True)
    return Registry()


def of(registry: Registry) -> QueryRecord:
    found = registry.get("q")
    assert found is not None
    return found


def test_a_worker_that_did_not_connect_back_is_tried_again(registry: Registry) -> None:
    launcher = Launcher(registry, lambda run: None)
    restarter = Restarter(registry, launcher)  # type: ignore[arg-type]
    launcher.start()
    registry.end("run 1", LOST)
    eventually(lambda: of(registry).run == "run 2")
    assert (of(registry).restarts, of(registry).state, of(registry).error) == (
        1,
        State.STARTING,
        None,
    )
    restarter.close()


def test_it_gives_up_when_it_fails_again_and_again(registry: Registry) -> None:
    launcher = Launcher(registry, lambda run: registry.end(run, LOST) and None)
    restarter = Restarter(registry, launcher)  # type: ignore[arg-type]
    launcher.start()
    registry.end("run 1", LOST)
    eventually(lambda: of(registry).state is State.FAILED)
    restarter.close()
    assert of(registry).restarts == MAX_RESTARTS
    assert launcher.runs == MAX_RESTARTS + 1


def test_an_error_of_the_query_s_own_is_left_to_the_user(registry: Registry) -> None:
    launcher = Launcher(registry, lambda run: None)
    restarter = Restarter(registry, launcher)  # type: ignore[arg-type]
    launcher.start()
    registry.end("run 1", "java.lang.ArithmeticException: / by zero\n\tat somewhere")
    restarter.close()
    assert launcher.runs == 1
    assert (of(registry).state, of(registry).error) == (
        State.FAILED,
        "java.lang.ArithmeticException: / by zero",
    )


def test_a_query_that_is_stopped_or_paused_meanwhile_is_left_alone(registry: Registry) -> None:
    launcher = Launcher(registry, lambda run: None)
    launcher.start()
    registry.end("run 1", LOST)
    restarter = Restarter(registry, launcher)  # type: ignore[arg-type]
    restarter._due.put(of(registry))
    registry.update("q", state=State.PAUSED)
    restarter.close()
    assert (launcher.runs, of(registry).state) == (1, State.PAUSED)
