"""The metric provider takes what an engine tells, derives the rest, and names what is missing."""

from collections.abc import Mapping
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from slackwater.core.entities import Operator, Reading, Values
from slackwater.core.errors import UsageError
from slackwater.metrics import Metric, MetricProvider

PIPE = (
    Operator("source", "q", downstream=("map",), source=True),
    Operator("map", "q", downstream=("sink",)),
    Operator("sink", "q"),
)


def reading(at_s: float, **metrics: dict[str, float]) -> Reading:
    return Reading(at_s, PIPE, {name.replace("_", "-"): of for name, of in metrics.items()})


class Counting(Metric):
    """Counts how often it is computed."""

    name = "counted"
    needs: ClassVar = ("raw",)
    times = 0

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        Counting.times += 1
        return inputs["raw"]


class UsesItTwice(Metric):
    name = "top"
    needs: ClassVar = ("counted", "other")

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        return {k: v + inputs["other"][k] for k, v in inputs["counted"].items()}


class AlsoUsesIt(Metric):
    name = "other"
    needs: ClassVar = ("counted",)

    def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
        return inputs["counted"]


def test_a_metric_is_computed_once_a_reading() -> None:
    Counting.times = 0
    provider = MetricProvider("e", ["raw"], ["top"], [Counting(), UsesItTwice(), AlsoUsesIt()])
    assert provider.update(reading(0, raw={"map": 2.0})) == {"top": {"map": 4.0}}
    assert Counting.times == 1


def test_what_the_engine_tells_itself_is_not_derived() -> None:
    provider = MetricProvider("e", ["raw", "counted"], ["counted"], [Counting()])
    Counting.times = 0
    assert provider.update(reading(0, counted={"map": 7.0})) == {"counted": {"map": 7.0}}
    assert Counting.times == 0


def test_a_missing_primitive_is_named_in_one_line() -> None:
    with pytest.raises(UsageError) as caught:
        MetricProvider("storm", ["tuples-in", "tuples-out", "busy-time"], ["nothing-like-it"])
    assert "'storm' cannot give the metric 'nothing-like-it'" in str(caught.value)

    with pytest.raises(UsageError) as caught:
        MetricProvider("storm", ["tuples-in", "busy-time"], ["highest-rate"])
    message = str(caught.value)
    assert "'highest-rate' because 'tuples-out' is missing" in message
    assert "it tells busy-time, tuples-in" in message
    assert "\n" not in message


def test_the_way_that_lacks_nothing_is_taken() -> None:
    by_cpu = MetricProvider("e", ["tuples-in", "tuples-out", "cpu-time"], ["highest-rate"])
    for at_s in (0.0, 1.0):
        found = by_cpu.update(
            reading(
                at_s,
                tuples_in={"map": 100 * at_s, "sink": 50 * at_s},
                tuples_out={"source": 100 * at_s, "map": 50 * at_s},
                cpu_time={"map": 0.5 * at_s, "sink": 0.1 * at_s},
            )
        )
    # map: 5 ms a tuple, half of them go on to a sink of 2 ms: 0.5 results for 6 ms of work.
    assert found["highest-rate"]["map"] == pytest.approx(0.5 / 0.006)
    assert found["highest-rate"]["sink"] == pytest.approx(1 / 0.002)


def test_two_ways_that_need_each_other_are_no_way() -> None:
    class There(Metric):
        name = "there"
        needs: ClassVar = ("here",)

        def _compute(self, inputs: Mapping[str, Values], reading: Reading) -> Values:
            return {}

    class Here(There):
        name = "here"
        needs: ClassVar = ("there",)

    with pytest.raises(UsageError, match="cannot give the metric 'here'"):
        MetricProvider("e", [], ["here"], [There(), Here()])


def test_queues_are_what_was_written_and_not_taken_in() -> None:
    provider = MetricProvider("e", ["tuples-in", "tuples-out"], ["queue-size"])
    found = provider.update(
        reading(0, tuples_in={"map": 70, "sink": 30}, tuples_out={"source": 100, "map": 35})
    )
    assert found["queue-size"] == {"map": 30, "sink": 5}


def test_copies_share_what_is_written_to_all_of_them() -> None:
    """Ten of forty are still queued; the copy that took three quarters has that share of them."""
    operators = (
        Operator("s0", "q", downstream=("a0", "a1"), source=True, vertex="s"),
        Operator("s1", "q", downstream=("a0", "a1"), source=True, vertex="s"),
        Operator("a0", "q", vertex="a"),
        Operator("a1", "q", downstream=("b1",), vertex="a"),
        Operator("b1", "q", vertex="b"),
    )
    counts = {
        "tuples-out": {"s0": 30.0, "s1": 10.0, "a1": 5.0},
        "tuples-in": {"a0": 22.5, "a1": 7.5, "b1": 5.0},
    }
    provider = MetricProvider("e", counts, ["queue-size"])
    found = provider.update(Reading(0.0, operators, counts))["queue-size"]
    assert found == {"a0": 7.5, "a1": 2.5, "b1": 0.0}


def test_an_engine_started_anew_gives_no_negative_rate() -> None:
    provider = MetricProvider("e", ["tuples-in"], ["input-rate"])
    provider.update(reading(0, tuples_in={"map": 1000}))
    assert provider.update(reading(1, tuples_in={"map": 10}))["input-rate"] == {}
    assert provider.update(reading(2, tuples_in={"map": 30}))["input-rate"] == {"map": 20}


@given(
    st.lists(
        st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=40
    )  # tuples that arrive and that could be taken in, second by second
)
def test_the_age_of_the_head_is_that_of_a_real_queue(steps: list[tuple[int, int]]) -> None:
    provider = MetricProvider("e", ["tuples-in", "tuples-out"], ["head-wait", "head-age"])
    queue: list[int] = []
    written = taken = 0
    for second, (arrive, take) in enumerate(steps):
        queue += [second] * arrive
        written += arrive
        gone = min(take, len(queue))
        taken += gone
        del queue[:gone]
        found = provider.update(
            reading(second, tuples_in={"map": taken}, tuples_out={"source": written})
        )
        expected = second - queue[0] if queue else 0
        assert expected <= found["head-wait"]["map"] <= expected + (1 if queue else 0)
        assert found["head-age"]["map"] == found["head-wait"]["map"]


def test_ages_add_up_along_a_path() -> None:
    provider = MetricProvider("e", ["tuples-in", "tuples-out"], ["head-age"])
    for second in range(4):
        found = provider.update(
            reading(
                second,
                tuples_in={"map": 10, "sink": 0},
                tuples_out={"source": 20, "map": 10},
            )
        )
    assert found["head-age"] == {"map": 3, "sink": 6}


def test_a_tuple_that_branches_counts_on_every_path() -> None:
    fork = (
        Operator("split", "q", downstream=("left", "right")),
        Operator("left", "q"),
        Operator("right", "q"),
    )
    provider = MetricProvider("e", ["selectivity", "cost"], ["path-selectivity", "path-cost"])
    found = provider.update(
        Reading(
            0,
            fork,
            {
                "selectivity": {"split": 0.5, "left": 1.0, "right": 1.0},
                "cost": {"split": 1.0, "left": 2.0, "right": 4.0},
            },
        )
    )
    assert found["path-selectivity"]["split"] == 1.0
    assert found["path-cost"]["split"] == 1.0 + 0.5 * 6.0


def pipeline(copies: int) -> tuple[Operator, ...]:
    """Two operators, each in so many copies, every one of which writes to all of the next."""
    lasts = tuple(Operator(f"last-{n}", "q", vertex="last") for n in range(copies))
    names = tuple(operator.name for operator in lasts)
    firsts = (Operator(f"first-{n}", "q", downstream=names, vertex="first") for n in range(copies))
    return (*firsts, *lasts)


def test_copies_are_no_branches() -> None:
    """A tuple goes to one of them, so it costs what it costs without copies."""
    found = []
    for copies in (1, 4):
        operators = pipeline(copies)
        cost = {o.name: 0.005 if o.vertex == "first" else 0.001 for o in operators}
        told = {"selectivity": dict.fromkeys(cost, 1.0), "cost": cost}
        provider = MetricProvider("e", ["selectivity", "cost"], ["highest-rate"])
        found.append(provider.update(Reading(0, operators, told))["highest-rate"]["first-0"])
    assert found[0] == pytest.approx(1 / 0.006)
    assert found[1] == pytest.approx(found[0])
