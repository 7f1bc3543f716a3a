"""Supervisor and workers over their socket, with Spark left out: who is told what."""

import threading
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar, Self

import pytest

from slackwater.core.errors import UsageError
from slackwater.engines.spark.queries.record import Accuracies
from slackwater.operations import fleet_file as config
from slackwater.operations.workers import worker as worker_module
from slackwater.operations.workers.supervisor import Supervisor
from slackwater.operations.workers.worker import Worker
from tests.waiting import eventually

FILE = """
name = "together"
[workers.w1]
cores = 4
remote = true
[workers.w2]
cores = 4
remote = true
[queries.source]
query = "os:getcwd"
min_accuracy = 0.2
[queries.sink]
query = "os:getcwd"
min_accuracy = 0.5
reads = ["source"]
"""


class FakeFleet:
    """Runs nothing, and remembers what it was told."""

    def __init__(self) -> None:
        self.spark = SimpleNamespace(sparkContext=SimpleNamespace(_gateway=None))
        self.queries: dict[str, Any] = {}
        self.failures: dict[str, str] = {}
        self.quality = self.parts = self
        self.used = self.others = 0.0
        self.orders: dict[str, tuple[float, float]] = {}
        self.heard: list[tuple[str, str]] = []

    def order(self, name: str, accuracy: float, least: float) -> None:
        self.orders[name] = (accuracy, least)

    def cost(self, name: str) -> dict[str, float]:
        return {"fixed": 0.0, "slope": 6.0, "most": 8.0, "current": 1.0}

    def rate(self, name: str) -> float:
        return 100.0

    lag_s = rate

    def accuracy(self, name: str) -> Accuracies:
        return Accuracies(0.2, 1.0, 1.0, 1.0)

    def reports(self) -> dict[str, Any]:
        part = {"windows": [], "delay_s": 0.0, "cost": [0.1, 0.0], "frontiers": [[1.0, 2.0]]}
        return dict.fromkeys(self.queries, part)

    def hear(self, name: str, by: str, message: dict[str, Any]) -> None:
        if (name, by) not in self.heard:
            self.heard.append((name, by))

    ended: ClassVar[set[str]] = set()

    def stop_query(self, name: str) -> None:
        del self.queries[name]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.queries.clear()


class FakeLaunch:
    """Stands for Spark."""

    made: ClassVar["list[FakeLaunch]"] = []

    def __init__(self, file: config.FleetFile, folder: Path, **_: object) -> None:
        self.file, self.folder = file, folder
        self.fleet = FakeFleet()
        FakeLaunch.made.append(self)

    def open_session(self) -> Any:
        context = SimpleNamespace(setLogLevel=lambda level: None)
        return SimpleNamespace(sparkContext=context, stop=lambda: None)

    def open_fleet(self, spark: object, name: str) -> FakeFleet:
        return self.fleet

    def reread(self, queries: object) -> None:
        pass

    def build(self, spark: object, name: str) -> str:
        return name

    def start(self, fleet: FakeFleet, name: str, built: str) -> None:
        fleet.queries[name] = built

    def checkpoint(self, name: str) -> Path:
        return self.folder / "checkpoints" / name


@pytest.fixture
def fleets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Supervisor, list[FakeFleet]]]:
    """A supervisor and two workers that run."""
    monkeypatch.setenv("SLACKWATER_RUNTIME_DIR", str(tmp_path))
    monkeypatch.setattr(worker_module, "Launch", FakeLaunch)
    monkeypatch.setattr(worker_module, "REPORT_EVERY_S", 0.05)
    FakeLaunch.made = []
    path = tmp_path / "fleet.toml"
    path.write_text(FILE)
    file = config.load(path)
    supervisor = Supervisor(file, path)
    workers = [Worker(file, path, name) for name in ("w1", "w2")]
    threads = [threading.Thread(target=each.run, daemon=True) for each in (*workers, supervisor)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(supervisor.placement.workers) == 2)
    yield supervisor, [each.fleet for each in FakeLaunch.made]
    supervisor.close()
    for thread in threads:
        thread.join(timeout=30)
        assert not thread.is_alive(), "a worker did not end with its fleet"


def test_queries_are_placed_shed_told_and_moved(
    fleets: tuple[Supervisor, list[FakeFleet]],
) -> None:
    supervisor, (first, second) = fleets
    eventually(lambda: {*first.queries, *second.queries} == {"source", "sink"})
    mine, other = (first, second) if "sink" in first.queries else (second, first)
    # Neither has the cores for all of its input: both are shed, and the sink gets no less.
    eventually(lambda: 0.5 <= other.orders.get("source", (0, 0))[0] < 1.0)
    eventually(lambda: {("source", "sink"), ("sink", "source")} == {*first.heard, *second.heard})

    target = "w2" if other is second else "w1"
    text = supervisor.path.read_text()
    supervisor.path.write_text(text.replace("reads =", f'workers = ["{target}"]\nreads ='))
    supervisor.placement.workers[target].cores = 40.0  # so that it fits there
    eventually(lambda: "sink" in other.queries and "sink" not in mine.queries)
    (row,) = [row for row in supervisor.rows() if row.query == "sink"]
    assert (row.moves, row.error) == (1, None)


def test_a_fleet_has_one_supervisor(fleets: tuple[Supervisor, list[FakeFleet]]) -> None:
    supervisor, _ = fleets
    with pytest.raises(UsageError, match="another supervisor"):
        Supervisor(supervisor.file, supervisor.path)


def test_a_turn_that_fails_ends_nothing(
    fleets: tuple[Supervisor, list[FakeFleet]], monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor, (first, second) = fleets
    turns = count()

    def fail(now_s: float) -> None:
        next(turns)
        raise KeyError("source")

    monkeypatch.setattr(supervisor.placement, "place_all", fail)
    eventually(lambda: next(turns) > 3)
    monkeypatch.undo()
    eventually(lambda: {*first.queries, *second.queries} == {"source", "sink"})
