"""The walk through one micro-batch in docs/architecture.md."""

import re

import grimp
import pytest

from tests.root import ROOT

FOUND_BY_NAME = "slackwater.policies.klink"  # nobody imports a policy: users name it
MOST = 9


def steps() -> list[str]:
    """Return the modules of the walk, in its order."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    section = text.split("## One micro-batch", 1)[1].split("\n## ", 1)[0]
    paths = re.findall(r"^\d+\. `([\w/]+)\.py`", section, re.MULTILINE)
    return ["slackwater." + path.replace("/", ".") for path in paths]


@pytest.fixture(scope="module")
def graph() -> grimp.ImportGraph:
    return grimp.build_graph("slackwater")


def test_few_files_and_none_twice(graph: grimp.ImportGraph) -> None:
    assert 5 < len(steps()) <= MOST
    assert len(set(steps())) == len(steps())
    assert set(steps()) <= graph.modules


def test_they_import_in_one_direction(graph: grimp.ImportGraph) -> None:
    walk = steps()
    for place, later in enumerate(walk[1:], 1):
        for earlier in walk[:place]:
            assert not graph.chain_exists(later, earlier), f"{later} imports {earlier}"
        found = any(graph.chain_exists(earlier, later) for earlier in walk[:place])
        assert found or later == FOUND_BY_NAME, f"nothing before it imports {later}"
