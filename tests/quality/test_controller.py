"""What the quality controller promises, on random applications and on the paper's."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from slackwater.core.errors import UsageError
from slackwater.quality import Cluster, Graph, Load, QualityController, Task, WarmUps
from slackwater.quality.controller import QualityDecision
from tests.quality.plant import Plant, make_layout, plants

NEARLY = 1e-3


def decide(
    plant: Plant, controller: QualityController | None = None, now_s: float = 0
) -> QualityDecision:
    chosen = controller or QualityController()
    return chosen.cycle(now_s, plant.cluster, plant.layout, plant.load())


def settle(plant: Plant, controller: QualityController, from_s: float = 0.0) -> QualityDecision:
    """Until warm-ups are over."""
    for number in range(12):
        decision = decide(plant, controller, from_s + 100.0 * number)
        plant.obey(decision)
    return decision


@given(plants())
@settings(max_examples=80, deadline=None)
def test_no_query_that_runs_is_below_its_minimum(plant: Plant) -> None:
    controller = QualityController()
    for number in range(6):
        decision = decide(plant, controller, 100.0 * number)
        plant.obey(decision)
        runs = plant.running[plant.graph.queries]
        assert np.all(decision.desired[runs] >= plant.graph.min_accuracy[runs] - 1e-9)


@given(plants())
@settings(max_examples=80, deadline=None)
def test_what_was_decided_fits_every_worker(plant: Plant) -> None:
    decision = decide(plant)
    plant.obey(decision)
    needed = plant.needed(decision.keep.tasks)[plant.layout.task]
    total = np.bincount(plant.layout.worker, weights=needed, minlength=len(plant.cluster.names))
    roomy = [name not in decision.short for name in plant.cluster.names]
    assert np.all(total[roomy] <= plant.cluster.available[roomy] + NEARLY)


@given(plants())
@settings(max_examples=80, deadline=None)
def test_no_higher_priority_is_shed_while_a_lower_has_something_to_give(plant: Plant) -> None:
    decision = settle(plant, QualityController())
    assume(not decision.warming)
    graph, layout = plant.graph, plant.layout
    runs = plant.running[graph.queries]
    least = graph.over_queries(np.where(runs, graph.min_accuracy, 0.0), runs)

    def gives(query: int) -> np.ndarray:
        """Cores, by task, that nobody more important than the query needs."""
        above = runs & (graph.priority > graph.priority[query])
        paid = np.maximum(least, graph.over_queries(decision.desired, above))
        return plant.needed(decision.keep.tasks) - plant.needed(paid)

    def tasks_on(query: int, worker: int) -> set[int]:
        own = graph.pair_task[graph.pair_query == query]
        return {int(task) for task in layout.task[layout.worker == worker] if task in own}

    for high in np.flatnonzero(runs & (decision.desired < 1 - NEARLY)).tolist():
        workers = [w for w in range(len(decision.left)) if tasks_on(high, w)]
        scarce = [w for w in workers if decision.left[w] <= 1e-3]
        assert scarce, "a query is shed though none of its workers is full"
        for low in np.flatnonzero(runs & (graph.priority < graph.priority[high])).tolist():
            cores = gives(low)
            could = [any(cores[task] > 0.005 for task in tasks_on(low, w)) for w in scarce]
            assert not all(could), "a lower priority could have given way on all full workers"


@given(plants())
@settings(max_examples=60, deadline=None)
def test_accuracy_is_back_at_everything_when_load_falls(plant: Plant) -> None:
    controller = QualityController()
    settle(plant, controller)
    assume(plant.fixed.sum() < 0.5)
    plant.rate = plant.rate * 1e-4
    decision = settle(plant, controller, from_s=1200.0)
    assert not controller.stopped
    assert np.all(decision.desired > 1 - NEARLY)


@given(plants())
@settings(max_examples=80, deadline=None)
def test_nothing_moves_or_stops_when_shedding_alone_can_do(plant: Plant) -> None:
    least = plant.graph.over_queries(
        plant.graph.min_accuracy, np.ones(len(plant.graph.queries), bool)
    )
    needed = plant.needed(least)[plant.layout.task]
    total = np.bincount(plant.layout.worker, weights=needed, minlength=len(plant.cluster.names))
    assume(np.all(total <= plant.cluster.available - NEARLY))
    for number in range(3):
        decision = decide(plant, now_s=100.0 * number)
        plant.obey(decision)
        assert (decision.moves, decision.stop) == ((), ())


@given(plants(), st.floats(0.1, 1.0))
@settings(max_examples=60, deadline=None)
def test_inputs_of_a_task_come_to_one_accuracy(plant: Plant, part: float) -> None:
    plant.cluster = Cluster(
        plant.cluster.names, plant.cluster.cores * part, np.zeros(len(plant.cluster.names))
    )
    keep = decide(plant).keep
    producers, consumers = plant.graph.edges[:, 0], plant.graph.edges[:, 1]
    arriving = keep.tasks[producers] * keep.edges
    assert np.allclose(arriving, keep.tasks[consumers])
    assert np.all((keep.edges >= 0) & (keep.edges <= 1 + 1e-12))


def taxi(rate: float, first: float = 1.0, second: float = 1.0) -> Plant:
    """The paper's Taxi Drives: two sources into two heavy queries, one with two instances."""
    graph = Graph(
        [
            Task("source1", ("sink1", "sink2")),
            Task("source2", ("sink1", "sink2")),
            Task("sink1", (), first, 0.4),
            Task("sink2", (), second, 0.6),
        ]
    )
    layout = make_layout(graph, [[0], [0], [0], [0, 0]])
    cluster = Cluster(("tm1", "tm2"), np.array([1.0, 1.0]), np.zeros(2))
    cost = np.array([0.00005, 0.00005, 0.001, 0.001])
    return Plant(graph, layout, cluster, cost, np.zeros(4), np.array([rate, rate, 0.0, 0.0]))


def test_queries_of_the_same_priority_give_way_together() -> None:
    decision = decide(taxi(400.0))
    assert not decision.moves
    assert np.all(decision.desired < 1)
    assert np.all(decision.desired > [0.4, 0.6])


def test_what_the_least_important_has_is_taken_before_the_next_is_touched() -> None:
    decision = decide(taxi(300.0, first=1, second=5))
    assert decision.desired[1] == pytest.approx(1.0)
    assert 0.4 <= decision.desired[0] < 1.0


def test_a_move_comes_when_the_minimums_no_longer_fit_and_goes_where_there_is_room() -> None:
    plant = taxi(600.0)
    decision = decide(plant)
    assert {move.target for move in decision.moves} == {"tm2"}
    assert not decision.stop


def test_while_an_instance_warms_up_all_on_its_worker_run_at_their_minimum() -> None:
    plant = taxi(600.0)
    controller = QualityController(warmups=WarmUps(limit_s=60, stay_s=300))
    moved = decide(plant, controller, 0.0)
    assert moved.warming
    assert {move.instance[0] for move in moved.moves} == {"sink2"}
    assert moved.desired[1] == 0.6
    plant.obey(moved)
    later = decide(plant, controller, 61.0)
    assert not later.warming
    assert later.desired[1] > 0.6


def test_an_instance_does_not_return_at_once() -> None:
    plant = taxi(600.0)
    controller = QualityController(warmups=WarmUps(limit_s=1, stay_s=300))
    moved = decide(plant, controller, 0.0)
    plant.obey(moved)
    plant.cluster = Cluster(plant.cluster.names, np.array([4.0, 0.01]), np.zeros(2))
    soon = decide(plant, controller, 10.0)
    assert not {m.instance for m in soon.moves} & {m.instance for m in moved.moves}


def test_minimums_beyond_all_capacity_stop_the_least_important_and_it_comes_back() -> None:
    graph = Graph([Task("low", (), 1, 0.9), Task("high", (), 2, 0.9)])
    layout = make_layout(graph, [[0], [0]])
    cluster = Cluster(("w",), np.array([1.0]), np.zeros(1))
    plant = Plant(graph, layout, cluster, np.full(2, 0.001), np.zeros(2), np.full(2, 800.0))
    controller = QualityController()
    decision = decide(plant, controller, 0.0)
    assert decision.stop == ("low",)
    plant.obey(decision)
    assert decision.desired[1] == pytest.approx(1.0)
    plant.rate = np.full(2, 300.0)
    back = decide(plant, controller, 100.0)
    assert back.resume == ("low",)
    assert not controller.stopped


def test_patience_waits_before_it_moves() -> None:
    plant = taxi(600.0)
    controller = QualityController(patience=3)
    moves = [bool(decide(plant, controller, float(n)).moves) for n in range(3)]
    assert moves == [False, False, True]


def test_cpu_that_others_use_is_not_given_away() -> None:
    plant = taxi(100.0)
    plant.cluster = Cluster(("tm1", "tm2"), np.array([1.0, 1.0]), np.array([0.8, 0.0]))
    assert np.all(decide(plant).desired < 1)


def test_a_task_that_has_not_processed_anything_counts_as_a_core() -> None:
    graph = Graph([Task("new", (), 1, 0.5)])
    layout = make_layout(graph, [[0]])
    load = Load.of(
        layout,
        in_rate=np.zeros(1),
        cpu=np.zeros(1),
        source_rate=np.array([10.0]),
        out_rate=np.zeros(0),
    )
    cluster = Cluster(("w",), np.array([0.75]), np.zeros(1))
    decision = QualityController().cycle(0, cluster, layout, load)
    assert decision.desired.tolist() == pytest.approx([0.75])


@pytest.mark.parametrize(
    ("task", "says"),
    [
        (lambda: Task("q", (), 1, 1.5), "min_accuracy is 1.5"),
        (lambda: Task("q", (), -1), "priority must not be negative"),
        (lambda: Graph([Task("a", ("b",))]), "feeds 'b', which is not there"),
        (lambda: Graph([Task("a", ("b",)), Task("b", ("a",))]), "in a circle"),
        (lambda: Graph([Task("a"), Task("a")]), "same name"),
        (lambda: QualityController(headroom=1.0), "headroom"),
    ],
)
def test_wrong_input_is_told_in_one_line(task: object, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        task()  # type: ignore[operator]
