"""The scenarios' fleets: valid files, and what is looked for in what was seen."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from slackwater.core.errors import UsageError
from slackwater.operations.fleet_file import QuerySection
from slackwater_bench.quality.checks import checks
from slackwater_bench.quality.fleet_run import section
from slackwater_bench.quality.report import write_scenario_report
from slackwater_bench.quality.scenarios import scenario, table


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_query_is_one_that_a_fleet_file_takes(number: int, tmp_path: Path) -> None:
    plan = scenario(number, 500.0, 60.0, 50, 0.0, tmp_path)
    for query in plan.queries.values():
        text = section("query", query)
        QuerySection.model_validate(tomllib.loads(text)["query"])
    assert {*plan.later} <= {*plan.queries}


def test_there_are_three(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1, 2 and 3"):
        scenario(4, 500.0, 60.0, 50, 0.0, tmp_path)


QUERIES: dict[str, dict[str, Any]] = {
    "source": {"min_accuracy": 0.5},
    "high": {"min_accuracy": 0.5, "reads": ["source"]},
    "low": {"min_accuracy": 0.2},
}


def look(at_s: float, *rows: dict[str, Any], moves: int = 0) -> dict[str, Any]:
    event = {"at_s": 1.0, "what": "moves", "query": "low", "worker": "w", "lacked": 0.3}
    workers = {"tm1": {"used": 0.9, "others": 0.0, "cores": 1.0}}
    return {"at_s": at_s, "queries": [*rows], "events": [event] * moves, "workers": workers}


def row(
    query: str, desired: float, delivered: float | None = None, **others: Any
) -> dict[str, Any]:
    return {
        "query": query,
        "phase": "running",
        "worker": "w",
        "priority": 2.0 if query == "high" else 1.0,
        "desired": desired,
        "warming": False,
        "rate": 100.0,
        "lag_s": 0.5,
        "accuracy": {"delivered": desired if delivered is None else delivered},
        **others,
    }


def test_what_is_below_its_minimum_is_counted_but_for_warm_ups() -> None:
    kept = look(0, row("source", 0.8), row("high", 0.5, 0.7))
    lost = look(1, row("source", 0.8), row("high", 0.4, 0.5))
    warming = look(2, row("source", 0.8), row("high", 0.5, 0.3, warming=True))
    moving = look(3, row("source", 0.8), row("high", 0.4, 0.3, phase="moving"))
    found = checks(QUERIES, [kept, lost, warming, moving])
    assert (found["decided_below_minimum"], found["measured_below_minimum"]) == (1, 1)


def test_a_low_priority_gives_before_a_high_one() -> None:
    wrong = look(0, row("source", 1.0), row("high", 0.8), row("low", 0.3))
    right = look(1, row("source", 1.0), row("high", 0.8), row("low", 0.2))
    elsewhere = look(2, row("source", 1.0), row("high", 0.8), row("low", 0.3, worker="v"))
    found = checks(QUERIES, [wrong, right, elsewhere])
    assert found["higher_priority_shed_first"] == 1


def test_moves_are_told_with_what_was_lacking_and_all_is_on_the_page(tmp_path: Path) -> None:
    samples = [look(0, row("low", 1.0)), look(16, row("low", 0.9), moves=2)]
    found = checks(QUERIES, samples)
    assert (len(found["moves"]), found["moves_without_need"]) == (2, 0)
    assert found["decided_at_the_end"] == 0.9
    result = {
        "scenario": 3,
        "rate": 500.0,
        "step_s": 60.0,
        "references": 10,
        "queries": QUERIES,
        "samples": samples,
        "checks": found,
    }
    assert table(result).row_count == 1
    assert "low at 1 s" in write_scenario_report(result, tmp_path).read_text()
