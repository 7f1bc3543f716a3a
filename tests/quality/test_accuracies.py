"""Every definition of accuracy keeps the same rules, a user's own as well."""

import sys
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given, settings

from slackwater.core.errors import UsageError
from slackwater.quality import Accuracy, Graph, Layout, Load, QualityController, Task, accuracies
from tests.quality.plant import Plant, make_layout, plants


@pytest.mark.parametrize("name", accuracies.names())
@given(plant=plants())
@settings(max_examples=30, deadline=None)
def test_it_is_a_share_and_no_better_than_what_it_lives_on(name: str, plant: Plant) -> None:
    found = accuracies.load(name).current(plant.layout, plant.load())
    assert np.all((found >= 0) & (found <= 1))
    edges = plant.graph.edges
    assert np.all(found[edges[:, 1]] <= found[edges[:, 0]] + 1e-12)


def chain(in_rate: tuple[float, float], backlog: tuple[float, float]) -> tuple[Layout, Load]:
    graph = Graph([Task("source", ("query",)), Task("query")])
    layout = make_layout(graph, [[0], [0]])
    load = Load.of(
        layout,
        in_rate=np.array(in_rate),
        cpu=np.ones(2),
        source_rate=np.array([100.0, 0.0]),
        out_rate=np.array([in_rate[0]]),
        backlog=np.array(backlog),
    )
    return layout, load


def test_the_published_one_multiplies_along_the_way() -> None:
    found = accuracies.load("throughput").current(*chain((80.0, 40.0), (500.0, 0.0)))
    assert found.tolist() == pytest.approx([0.8, 0.4])


def test_rows_that_wait_count_as_rows_that_come() -> None:
    found = accuracies.load("lag", drain_s=5.0).current(*chain((80.0, 80.0), (500.0, 0.0)))
    assert found.tolist() == pytest.approx([0.4, 0.4])


def test_all_of_nothing_is_everything() -> None:
    layout, _ = chain((0.0, 0.0), (0.0, 0.0))
    quiet = Load.of(
        layout,
        in_rate=np.zeros(2),
        cpu=np.zeros(2),
        source_rate=np.zeros(2),
        out_rate=np.zeros(1),
    )
    assert accuracies.load("throughput").current(layout, quiet).tolist() == [1.0, 1.0]


class Halved(Accuracy):
    """Counts only every other row."""

    def _local(self, layout: Layout, load: Load) -> np.ndarray:
        return np.full(len(layout.graph.tasks), 0.5)


def test_a_definition_of_ones_own_is_loaded_by_its_path_and_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("my_accuracies")
    module.Halved = Halved  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "my_accuracies", module)
    controller = QualityController(accuracies.load("my_accuracies:Halved"))
    assert isinstance(controller.accuracy, Halved)


def test_an_unknown_name_is_told_with_the_nearest() -> None:
    with pytest.raises(UsageError, match="Did you mean 'throughput'"):
        accuracies.load("thruput")
