"""Missing rights are told, with what to do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from slackwater.enforce import rights
from tests.busy_process import idle_process


@pytest.mark.skipif(os.getuid() != 0, reason="takes root to become somebody without rights")
def test_without_the_right_nice_is_refused_and_the_fix_is_told() -> None:
    code = (
        "import os; from slackwater.enforce.rights import *;"
        "os.setgid(65534); os.setuid(65534);"
        "print(lacking_nice(os.getpid())); print(lacking_nice(1));"
        "print(lacking_real_time(os.getpid()))"
    )
    said = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "could be raised but never lowered again" in said[0]
    assert "prlimit --nice=40" in said[0]
    assert "belongs to another user" in said[1]
    assert "prlimit --rtprio=99" in said[2]


def test_two_sessions_are_warned_about_and_one_is_not() -> None:
    if not rights.AUTOGROUP.exists() or rights.AUTOGROUP.read_text().strip() != "1":
        pytest.skip("this kernel has no autogroups, or they are off")
    places = Path("/proc/self/cgroup").read_text().splitlines()
    if not any(line.endswith((":cpu:/", "cpu,cpuacct:/")) or line == "0::/" for line in places):
        pytest.skip("these processes are in a control group, where autogroups do not count")
    with idle_process(1, session=True) as one, idle_process(1, session=True) as other:
        warning = rights.autogroup_warning([one.process.pid, other.process.pid])
        assert warning is not None
        assert "kernel.sched_autogroup_enabled=0" in warning
        assert rights.autogroup_warning([one.process.pid]) is None
