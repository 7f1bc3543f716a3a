"""What a fleet's view asks for to show itself, without Spark."""

from collections.abc import Iterable
from typing import Any

import pytest

from slackwater.core import QuerySpec
from slackwater.engines.spark.queries.record import QueryRecord, State
from slackwater.engines.spark.queries.registry import Registry
from slackwater.engines.spark.queries.view import FleetView
from slackwater.operations import launch

NAMES = ("a", "b", "c")


class Agent:
    """Asks brokers how much waits, and keeps of which runs."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def rows_left(self, runs: Iterable[str]) -> dict[str, int]:
        self.asked.append(list(runs))
        return dict.fromkeys(self.asked[-1], 7)


class Launcher:
    def look(self) -> tuple[dict[str, Any], bool]:
        return {}, False


class View(FleetView):
    """A fleet of three queries that run."""

    def __init__(self) -> None:
        self.name, self.policy, self.slots = "ads", "klink", 2
        self.gate_kind, self.gate_reason = "clock", "as asked"
        self.agent: Any = Agent()
        self._agent, self._registry = self.agent, Registry()
        launcher: Any = Launcher()
        self._launcher = launcher
        query: Any = object()
        for name in NAMES:
            spec, run = QuerySpec(name), f"run of {name}"
            writer: Any = object()
            self._registry.add(
                QueryRecord(spec, "clock", State.ACTIVE, query=query, run=run, writer=writer)
            )


@pytest.fixture
def view() -> View:
    return View()


def test_all_that_run_are_asked_about(view: View) -> None:
    assert [row.lag_rows for row in view.status().queries] == [7, 7, 7]
    assert view.agent.asked == [["run of a", "run of b", "run of c"]]


def test_the_status_of_one_query_asks_about_that_one(view: View) -> None:
    (row,) = view.status("b").queries
    assert (row.name, row.lag_rows) == ("b", 7)
    assert view.status("nobody").queries == ()
    for query in view.queries.values():
        query._repr_html_()
    runs = [[f"run of {name}"] for name in NAMES]
    assert view.agent.asked == [["run of b"], [], *runs]


def test_a_line_that_shows_no_lag_asks_nobody(view: View) -> None:
    fleet: Any = view
    assert "3 running; 0 batches" in launch._line(fleet)
    assert view.agent.asked == [[]]
