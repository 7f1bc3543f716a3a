"""A stranger's policy and source pass the public checks; the workload is checked with ours."""

from collections.abc import Callable
from pathlib import Path

import pytest
from examples.growing_file import GrowingFileReader

from slackwater import testing
from tests.root import ROOT


@pytest.mark.parametrize("check", testing.POLICY_CHECKS, ids=lambda check: check.__name__)
def test_the_policy(check: Callable[[str], None]) -> None:
    check("examples.shortest_batch:ShortestBatch")


def test_the_source(tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.touch()

    def add_rows(count: int) -> None:
        before = len(file.read_text().splitlines())
        with file.open("a") as more:
            more.writelines(f"line {before + number}\n" for number in range(count))

    testing.check_source(lambda: GrowingFileReader(str(file)), add_rows)


@pytest.mark.parametrize("name", ["door_counts", "growing_file", "shortest_batch"])
def test_they_are_short(name: str) -> None:
    lines = (ROOT / "examples" / f"{name}.py").read_text().splitlines()
    assert 30 <= sum(bool(line.strip()) for line in lines) <= 60
