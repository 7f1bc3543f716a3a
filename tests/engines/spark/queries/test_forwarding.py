"""What a fleet's queries tell the queries next to them, without Spark."""

from dataclasses import asdict
from typing import Any

from slackwater.core.model import Outlook, QueryMetrics, QuerySpec, QueryState, Sweep
from slackwater.core.windows import Deadlines, InputStream, Window
from slackwater.engines.spark.control.view import entry
from slackwater.engines.spark.queries.forwarding import FleetParts
from slackwater.engines.spark.queries.record import QueryRecord
from slackwater.engines.spark.queries.registry import Registry
from slackwater.ipc.messages import Told
from slackwater.metrics.promises import PromiseObserver

WINDOW = Window("tumbling", 3.0, 3.0)


class FakeAgent:
    """Remembers what the controller is told."""

    def __init__(self) -> None:
        self.sent: list[Told] = []
        self.link = self

    def send(self, message: Told) -> None:
        self.sent.append(message)


class Fleet:
    """One query."""

    def __init__(self, deadlines: Deadlines, **metrics: Any) -> None:
        self.registry = Registry()
        record = self.registry.add(QueryRecord(QuerySpec("q", deadlines=deadlines), "clock"))
        self.specs: list[QuerySpec] = []
        self.registry.subscribe(lambda old, new: self.specs.append(new.spec))
        self.agent = FakeAgent()
        state = QueryState(record.spec, metrics=QueryMetrics(**metrics))
        known = {"q": entry(state, now_s=0.0, promises=PromiseObserver())}
        self.parts = FleetParts(self.registry, self.agent, lambda: (known, False))  # type: ignore[arg-type]


def progress(start: str, newest: str) -> dict[str, Any]:
    return {
        "timestamp": f"1970-01-01T00:00:{start}Z",
        "numInputRows": 10,
        "durationMs": {"addBatch": 100, "triggerExecution": 500},
        "eventTime": {"max": f"1970-01-01T00:00:{newest}Z"},
        "sources": [],
    }


def test_how_far_a_query_is_is_told_once() -> None:
    fleet = Fleet(Deadlines())
    fleet.parts.take("q", progress("05.000", "04.500"))
    assert fleet.parts.reports()["q"]["frontiers"] == [(4.5, 5.5)]
    assert fleet.parts.reports()["q"]["frontiers"] == []


def test_a_writer_takes_the_windows_of_its_readers_and_keeps_them() -> None:
    fleet = Fleet(Deadlines(inputs=(InputStream("feed", "at", 0.3),)))
    ahead = {"windows": [asdict(WINDOW)], "delay_s": 0.3, "cost": [0.4, 1e-5]}
    for _ in range(2):
        fleet.parts.hear("q", "reader", ahead)
    assert [spec.deadlines.windows for spec in fleet.specs] == [(WINDOW,)]
    assert fleet.agent.sent[-1] == Told("q", beyond=Outlook(0.4, 1e-5))
    fleet.parts.hear("q", "another", {**ahead, "delay_s": 1.3, "cost": [0.1, 2e-5]})
    assert fleet.specs[-1].deadlines.windows == (WINDOW, Window("tumbling", 3.0, 3.0, 1.0))
    assert fleet.agent.sent[-1].beyond == (0.4, 2e-5)


def test_a_reader_is_told_of_sweeps() -> None:
    fleet = Fleet(Deadlines((WINDOW,), (InputStream("log", "at", 0.3),)))
    fleet.parts.hear("q", "writer", {"frontiers": [[2.0, 2.2], [3.4, 3.6]]})
    assert fleet.agent.sent == [Told("q", sweep=Sweep(3.0, 3.6))]


def test_a_result_of_a_reader_costs_two_batches() -> None:
    deadlines = Deadlines((WINDOW,), (InputStream("log", "at", 0.3),))
    fleet = Fleet(deadlines, batch_fixed_s=0.25, batch_empty_s=0.125, batch_per_row_s=1e-5)
    found = fleet.parts.reports()["q"]
    assert (found["cost"], found["delay_s"], len(found["windows"])) == ([0.375, 1e-5], 0.3, 1)


def test_who_is_not_there_hears_nothing() -> None:
    fleet = Fleet(Deadlines())
    fleet.parts.hear("gone", "writer", {"frontiers": [[2.0, 2.2], [3.4, 3.6]]})
    assert fleet.agent.sent == []
