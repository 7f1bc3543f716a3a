"""How far a watermark may be raised, without Spark."""

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from slackwater.engines.spark.gates.watermark import MarkedInput, WatermarkRaise
from slackwater.engines.spark.sources.frontier import InputToldByUser, NoFrontier, refuse_limited
from slackwater.engines.spark.sources.remote_frontier import FrontierLost
from tests.waiting import eventually


class Told:
    def __init__(self, newest_us: int | None) -> None:
        self.newest = newest_us

    def newest_us(self) -> int | None:
        return self.newest


MARKS = {"a": 100_000}


def test_a_limited_batch_has_sparks_own_watermark_only() -> None:
    """It may not read what has arrived, nor what a silent input brings when it wakes up."""
    raises = WatermarkRaise([MarkedInput("a", 1000, Told(900_000_000))], idle_after_ms=5000)
    assert raises.reach_ms(MARKS, now_ms=1_000_000) == 899_000
    raises.reach_ms(MARKS, now_ms=1_010_000)
    assert raises.reach_ms(MARKS, now_ms=1_060_000, limited=True) == 100_000


def test_a_frontier_that_is_not_known_is_not_silence() -> None:
    told = Told(None)
    raises = WatermarkRaise([MarkedInput("a", 1000, told)], idle_after_ms=5000)
    for step in range(10):
        marks = {"a": 100_000 + 1000 * step}  # Spark reads on
        assert raises.reach_ms(marks, now_ms=1_000_000 + 1000 * step) == marks["a"]


def test_an_input_that_tells_nothing_new_follows_the_clock() -> None:
    raises = WatermarkRaise([MarkedInput("a", 1000, Told(900_000_000))], idle_after_ms=5000)
    reached = [raises.reach_ms(MARKS, now_ms=now_ms) for now_ms in (901_000, 905_000, 910_000)]
    assert reached == [899_000, 899_000, 904_000]


def test_where_the_largest_counts_a_silent_input_hides_no_other() -> None:
    """The other one brings what is an hour old: after the clock its rows would all be late."""
    other = Told(900_000_000)
    inputs = [MarkedInput("a", 1000, other), MarkedInput("b", 1000, Told(1_000_000))]
    raises = WatermarkRaise(inputs, idle_after_ms=5000)
    marks = {"a": None, "b": None}
    for now_ms in range(4_500_000, 4_520_000, 1000):
        other.newest = 900_000_000 + 1000 * (now_ms - 4_500_000)
        reached_ms = raises.reach_ms(marks, now_ms, largest=True)
        assert reached_ms == other.newest // 1000 - 1000
    for now_ms in (4_521_000, 4_530_000):  # now both are silent
        reached_ms = raises.reach_ms(marks, now_ms, largest=True)
    assert reached_ms == 4_530_000 - 5000 - 1000


def test_without_the_option_silence_changes_nothing() -> None:
    raises = WatermarkRaise([MarkedInput("a", 1000, Told(900_000_000))])
    assert {raises.reach_ms(MARKS, now_ms=now) for now in (901_000, 9_000_000)} == {899_000}


def test_an_input_that_nobody_knows_of_keeps_the_others_back() -> None:
    inputs = [MarkedInput("a", 0, Told(900_000_000)), MarkedInput("b", 0)]
    assert WatermarkRaise(inputs).reach_ms({"a": 1, "b": None}, now_ms=1) is None
    assert WatermarkRaise(inputs).reach_ms({"a": 1, "b": 5}, now_ms=1) == 5
    assert WatermarkRaise(inputs).reach_ms({"a": 1, "b": 5}, now_ms=1, largest=True) == 900_000


def test_an_input_that_will_not_tell_any_more_is_left_to_spark() -> None:
    """The others go on, and what follows the clock does."""

    def lost() -> int:
        asked.append(1)
        raise FrontierLost("too many files")

    asked: list[int] = []
    frontier: Any = SimpleNamespace(newest_us=lost)
    inputs = [MarkedInput("a", 0, frontier), MarkedInput("b", 0, Told(900_000_000))]
    raises = WatermarkRaise(inputs, idle_after_ms=5000)
    marks = {"a": 100_000, "b": 100_000}
    assert raises.reach_ms(marks, now_ms=1_000_000) == 100_000
    assert (raises.is_told, raises.why_lost) == (False, "too many files")
    assert raises.reach_ms(marks | {"a": 990_000}, now_ms=1_001_000) == 900_000
    assert (raises.is_told, len(asked)) == (True, 1)
    for now_ms in (1_002_000, 1_010_000):
        raises.look(marks, now_ms)
        reached_ms = raises.reach_ms(marks, now_ms)
    assert reached_ms == 1_005_000


def test_one_number_tells_nothing_of_one_of_several_inputs() -> None:
    assert InputToldByUser(lambda query: 7.5, "q", 0, alone=True).newest_us() == 7_500_000
    assert InputToldByUser(lambda query: 7.5, "q", 1, alone=False).newest_us() is None
    assert InputToldByUser(lambda query: {1: 8.0}, "q", 1, alone=False).newest_us() == 8_000_000


def relation(**options: str) -> Any:
    """A source in a plan."""
    return SimpleNamespace(
        getClass=lambda: SimpleNamespace(getSimpleName=lambda: "StreamingRelationV2"),
        extraOptions=lambda: SimpleNamespace(asCaseSensitiveMap=lambda: options),
    )


@pytest.mark.parametrize(
    "limit",
    [
        "maxFilesPerTrigger",
        "minOffsetsPerTrigger",
        "eventhubs.maxEventsPerTrigger",
        "streaming-max-rows-per-micro-batch",
        "rowsPerBatch",
        "rows_per_batch",
        "sheddable",
    ],
)
def test_a_source_that_may_leave_rows_behind_is_refused(limit: str) -> None:
    with pytest.raises(NoFrontier, match=limit.lower()):
        refuse_limited(relation(**{limit: "500"}))


def test_other_options_are_no_limit() -> None:
    options = {"subscribe": "clicks", "kafka.bootstrap.servers": "a:9092", "sheddable": "false"}
    refuse_limited(relation(**options))


def test_a_users_function_that_hangs_is_not_waited_for_twice() -> None:
    begun: list[str] = []
    go_on = threading.Event()

    def hangs(query: str) -> float:
        begun.append(query)
        go_on.wait()
        return 7.5

    told = InputToldByUser(hangs, "q", 0, alone=True)
    assert [told.newest_us() for _ in range(3)] == [None] * 3
    assert begun == ["q"]
    go_on.set()
    eventually(lambda: told.newest_us() == 7_500_000)


def test_what_a_users_function_raises_is_raised() -> None:
    def fails(query: str) -> float:
        raise ValueError("no such topic")

    told = InputToldByUser(fails, "q", 0, alone=True)
    for _ in range(2):
        with pytest.raises(ValueError, match="no such topic"):
            told.newest_us()
