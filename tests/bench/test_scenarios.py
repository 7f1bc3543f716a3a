"""The scenarios' fleets: valid files, and what is looked for in what was seen."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from slackwater.bench.quality.scenarios import _toml, checks, scenario, table
from slackwater.config import QuerySection
from slackwater.core.errors import UsageError


@pytest.mark.parametrize("number", [1, 2, 3])
def test_every_query_is_one_that_a_fleet_file_takes(number: int, tmp_path: Path) -> None:
    plan = scenario(number, 500.0, 50, 0.0, tmp_path)
    for query in plan.queries.values():
        text = "\n".join(f"{key} = {_toml(value)}" for key, value in query.items())
        QuerySection.model_validate(tomllib.loads(text))
    assert {*plan.later} <= {*plan.queries}


def test_there_are_three(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="1, 2 and 3"):
        scenario(4, 500.0, 50, 0.0, tmp_path)


def look(at_s: float, desired: float, moves: int = 0, phase: str = "running") -> dict[str, Any]:
    accuracy = {"desired": desired, "delivered": desired}
    row = {"query": "knn-0", "phase": phase, "worker": "tm1", "moves": moves, "accuracy": accuracy}
    return {"at_s": at_s, "queries": [row]}


def test_what_is_below_its_minimum_is_counted(tmp_path: Path) -> None:
    plan = scenario(3, 500.0, 50, 0.0, tmp_path)
    samples = [look(0, 1.0), look(1, 0.05), look(2, 0.05, phase="moving"), look(3, 0.9, 1)]
    found = checks(plan, samples)
    assert found == {
        "looks_below_minimum": 1,
        "most_moves_of_a_query": 1,
        "accuracy_at_the_end": 0.9,
    }
    assert table({"scenario": 3, "rate": 500.0, "samples": samples}).row_count == 1
