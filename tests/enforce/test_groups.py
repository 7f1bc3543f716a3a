"""Control groups of both versions; version 2 on files that stand for the kernel's."""

from pathlib import Path

import pytest

from slackwater.core.errors import SlackwaterError, UsageError
from slackwater.enforce.groups import GroupsV1, GroupsV2, check_writable, find_groups


def mounts(tmp_path: Path, *lines: str) -> Path:
    file = tmp_path / "mounts"
    file.write_text("".join(f"{line}\n" for line in lines))
    return file


def test_the_version_that_has_the_controller_is_taken(tmp_path: Path) -> None:
    unified = tmp_path / "unified"
    unified.mkdir()
    (unified / "cgroup.controllers").write_text("hugetlb\n")
    v2 = f"cgroup2 {unified} cgroup2 rw 0 0"
    v1 = f"cgroup {tmp_path}/cpu cgroup rw,cpu,cpuacct 0 0"
    assert isinstance(find_groups("s", mounts=mounts(tmp_path, v2, v1)), GroupsV1)
    (unified / "cgroup.controllers").write_text("cpuset cpu io\n")
    assert isinstance(find_groups("s", mounts=mounts(tmp_path, v2)), GroupsV2)


def test_none_at_all_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="use the translator nice"):
        find_groups("s", mounts=mounts(tmp_path, "proc /proc proc rw 0 0"))


def test_version_2_makes_threaded_groups_and_turns_shares_into_weights(tmp_path: Path) -> None:
    groups = GroupsV2(tmp_path, "slackwater")
    groups.make("")
    groups.make("q1")
    groups.set_shares("q1", 2048)
    groups.set_quota("q1", 0.5)
    assert (tmp_path / "cgroup.subtree_control").read_text() == "+cpu"
    assert (tmp_path / "slackwater" / "cgroup.subtree_control").read_text() == "+cpu"
    made = tmp_path / "slackwater" / "q1"
    assert (made / "cgroup.type").read_text() == "threaded"
    assert (made / "cpu.weight").read_text() == "200"
    assert (made / "cpu.max").read_text() == "50000 100000"
    groups.set_quota("q1", None)
    assert (made / "cpu.max").read_text() == "max 100000"


def test_a_place_that_may_not_be_written_says_how_to_get_one(tmp_path: Path) -> None:
    groups = GroupsV1(tmp_path / "nowhere", "slackwater")
    with pytest.raises(SlackwaterError, match="run as root, or have a group delegated"):
        check_writable(groups)
