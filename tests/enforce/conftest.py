"""Fixtures of enforcement."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.core.errors import SlackwaterError
from slackwater.enforce.applier import Applier
from slackwater.enforce.groups import Groups, check_writable, find_groups
from slackwater.enforce.journal import Journal
from slackwater.enforce.rights import has_cap_sys_nice


@pytest.fixture
def groups() -> Groups:
    """Real control groups, where this machine lets us make them."""
    try:
        found = find_groups(f"slackwater-tests-{os.getpid()}")
        check_writable(found)
    except SlackwaterError as error:
        pytest.skip(str(error))
    return found


@pytest.fixture
def may_nice() -> None:
    if not has_cap_sys_nice():
        pytest.skip("lowering nice values takes CAP_SYS_NICE, which this user has not")


@pytest.fixture
def complaints() -> list[str]:
    return []


@pytest.fixture
def applier(tmp_path: Path, complaints: list[str]) -> Iterator[Applier]:
    """A applier without groups."""
    journal = Journal(tmp_path / "journal")
    yield Applier(journal, None, complaints.append)
    journal.close()


@pytest.fixture
def grouping_applier(tmp_path: Path, groups: Groups, complaints: list[str]) -> Iterator[Applier]:
    """A applier with groups; leaves none behind."""
    journal = Journal(tmp_path / "journal")
    made = Applier(journal, groups, complaints.append)
    yield made
    made.restore()
    journal.close()
    groups.remove(groups.root)
