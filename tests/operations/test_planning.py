"""The planner: more cores or fewer queries are never worse than the target."""

from dataclasses import replace
from typing import Any

import pytest

from slackwater.core.windows import Deadlines, InputStream, Window
from slackwater.engines.simulator.prediction import Calibration
from slackwater.engines.simulator.query import BatchCosts
from slackwater.operations.fleet_file import FleetFile
from slackwater.operations.planning import (
    Planned,
    Planner,
    last,
    not_planned,
    plan,
    sentences,
    table,
)


def planner(**changes: object) -> Planner:
    windows = Deadlines((Window("tumbling", 3.0, 3.0),), (InputStream("in", "time", 0.3),))
    queries = [Planned(name, windows, rate=500.0) for name in ("first", "second")]
    return Planner(queries, "klink", **changes)  # type: ignore[arg-type]


def test_a_plan_says_what_a_target_takes() -> None:
    answer = plan(planner(), cores=1, p99_s=1.5, show=lambda line: None)
    assert [row["query"] for row in answer["queries"]] == ["first", "second"]
    assert answer["least_cores"] == 1
    most = answer["most_queries"]
    assert most > 4
    assert planner().predict(1, most).p99_s <= 1.5 < planner().predict(1, most + 2).p99_s + 0.5
    assert table(answer).row_count == 3
    assert f"at most {most} such queries" in sentences(answer)[0]


def test_a_target_below_what_a_batch_takes_cannot_be_met() -> None:
    answer = plan(planner(), cores=1, p99_s=0.31, show=lambda line: None)
    assert answer["most_queries"] == 0
    assert answer["least_cores"] is None
    assert "not even 512 cores" in sentences(answer)[1]


def test_a_driver_of_its_own_can_be_the_bottleneck() -> None:
    costs = BatchCosts(driver=0.6)
    windows = planner().queries[0].deadlines
    queries = [Planned(f"q{number}", windows, rate=500.0) for number in range(12)]
    one = Planner(queries, "klink", Calibration(costs), driver_cores=0.3)
    assert one.predict(8).p99_s > 1.5 * one.predict(8, drivers=4).p99_s
    least = one.least_drivers(8, p99_s=2.0)
    assert least is not None
    assert least > 1


@pytest.mark.parametrize("limit", [0, 1, 5, 64, 99])
def test_the_last_number_that_holds_is_found(limit: int) -> None:
    assert last(lambda n: n <= limit, 99) == limit


def test_long_windows_are_simulated_for_long_enough() -> None:
    windows = Deadlines((Window("tumbling", 120.0, 120.0),), (InputStream("in", "time", 90.0),))
    found = Planner([Planned("slow", windows, rate=20.0)], "klink").predict(2)
    assert len(found.results) == 3
    assert 90 < found.p99_s < 100  # delays are up to 90 s too


def test_windows_that_never_come_count() -> None:
    windows = Deadlines((Window("tumbling", 3.0, 3.0),), (InputStream("in", "time", 0.3),))
    heavy = Planned("heavy", windows, rate=300_000.0)
    found = Planner([heavy], "klink").predict(1)
    assert len(found.results) == 20
    assert found.p99_s > 30


def two(**second: Any) -> list[float]:
    """Mean latencies of two queries on a machine that is nearly full, the second one changed."""
    windows = planner().queries[0].deadlines
    usual = [Planned(f"q{number}", windows, rate=500.0) for number in range(5)]
    found = Planner([*usual, replace(usual[0], name="other", **second)], "klink").predict(1)
    means = []
    for name in ("q0", "other"):
        seen = [result.latency_s for result in found.results if result.query == name]
        means.append(sum(seen) / len(seen))
    return means


def test_an_important_query_is_planned_to_be_early() -> None:
    plain_s, important_s = two()[1], two(priority=5.0)[1]
    assert important_s < plain_s


def test_a_trigger_delays_results() -> None:
    assert two(trigger_s=6.0)[1] > 2 * two()[1]


def test_in_update_mode_one_batch_is_enough() -> None:
    windows = replace(planner().queries[0].deadlines, output_mode="update")
    assert two(deadlines=windows)[1] < 0.85 * two()[1]


def test_a_window_that_takes_one_batch_is_planned_so() -> None:
    assert two(one_batch=True)[1] < 0.85 * two()[1]


def test_what_is_not_planned_is_said_in_a_line_each() -> None:
    rough = {"time": "t", "window": "2 seconds", "aggregates": {"n": "count()"}}
    queries = {"rough": {"query": "a:b", "approximate": rough}, "own": {"query": "a:c"}}
    file = FleetFile.model_validate({"gate": "none", "queries": queries})
    lines = not_planned(file, ["own"])
    assert [line.partition(":")[0] for line in lines] == ["gate = none", "own", "rough"]
