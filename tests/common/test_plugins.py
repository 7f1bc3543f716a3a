"""Members of families that other distributions register."""

from pathlib import Path

import pytest

from slackwater import policies
from slackwater.core import UsageError
from slackwater.engines import outside
from slackwater.testing import check_policy

MODULE = """
from slackwater.core import Admission
from slackwater.engines.outside import Driver
from slackwater.policies import Policy

class Alphabetical(Policy):
    name = "alphabetical"

    def _rank(self, waiting, snapshot):
        for query in sorted(waiting, key=lambda query: query.name):
            yield Admission(query.name, "next in the alphabet")

class Storm(Driver):
    name = "storm"

    def _read(self, now_s):
        raise NotImplementedError

class Nothing: ...
"""
ENTRY_POINTS = """
[slackwater.policies]
alphabetical = stranger:Alphabetical
fcfs = stranger:Alphabetical
nothing = stranger:Nothing
gone = stranger:Gone

[slackwater.drivers]
storm = stranger:Storm
"""


@pytest.fixture(autouse=True)
def stranger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Install a distribution of somebody else's."""
    (tmp_path / "stranger.py").write_text(MODULE)
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    monkeypatch.syspath_prepend(tmp_path)


def test_a_registered_policy_is_found_beside_ours() -> None:
    assert policies.load("alphabetical", seed=5).name == "alphabetical"
    assert {"alphabetical", "klink"} <= set(policies.names())
    assert len(policies.names()) == len(set(policies.names()))
    check_policy("alphabetical")


def test_ours_cannot_be_replaced() -> None:
    assert type(policies.load("fcfs")).__module__ == "slackwater.policies.fcfs"


def test_a_registered_driver_is_found_beside_ours() -> None:
    assert set(outside.names()) == {"flink", "process", "spark", "storm"}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("alphabetcal", "Did you mean 'alphabetical'?"),
        ("nothing", "nothing is not a policy"),
        ("gone", "stranger has no 'Gone'"),
    ],
)
def test_what_is_wrong_is_one_clear_line(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("?", r"\?")):
        policies.load(name)
