"""What this process may do to others, and how to get the right to do more."""

import os
import re
from collections.abc import Iterable
from pathlib import Path

CAP_SYS_NICE = 23
AUTOGROUP = Path("/proc/sys/kernel/sched_autogroup_enabled")
_HOW = (
    "run as root, or give this Python the right (sudo setcap cap_sys_nice+ep on a copy of it), or "
    "start the engine with {limit}"
)


def has_cap_sys_nice() -> bool:
    """Tell whether this process may change priorities of any thread, in both directions."""
    match = re.search(r"^CapEff:\s*(\w+)", Path("/proc/self/status").read_text(), re.MULTILINE)
    return bool(match and int(match.group(1), 16) >> CAP_SYS_NICE & 1)


def lacking_nice(pid: int) -> str | None:
    """Say why nice values of a process may not be used; ``None`` if they may.

    A value that was raised must be lowered again at the end, and that is what takes the right.
    """
    if has_cap_sys_nice():
        return None
    if _owner(pid) != os.getuid():
        return f"process {pid} belongs to another user: {_HOW.format(limit='your own user')}"
    if (_limit(pid, "Max nice priority") or 0) < 40:
        how = _HOW.format(limit="prlimit --nice=40 (LimitNICE=-20 in a systemd unit)")
        return f"nice values of process {pid} could be raised but never lowered again: {how}"
    return None


def lacking_real_time(pid: int) -> str | None:
    """Say why threads of a process may not be made real-time; ``None`` if they may."""
    if has_cap_sys_nice():
        return None
    if _owner(pid) != os.getuid():
        return f"process {pid} belongs to another user: {_HOW.format(limit='your own user')}"
    if (_limit(pid, "Max realtime priority") or 0) >= 99:
        return None
    how = _HOW.format(limit="prlimit --rtprio=99 (LimitRTPRIO=99 in a systemd unit)")
    return f"threads of process {pid} may not be made real-time: {how}"


def autogroup_warning(pids: Iterable[int]) -> str | None:
    """Warn where nice counts only inside a login session's autogroup, if that matters here."""
    try:
        if AUTOGROUP.read_text().strip() != "1":
            return None
    except OSError:
        return None
    sessions = {}
    for pid in pids:
        try:
            sessions[pid] = Path(f"/proc/{pid}/autogroup").read_text().split()[0]
            places = Path(f"/proc/{pid}/cgroup").read_text()
        except (OSError, IndexError):
            continue
        if not re.search(r"^\d+:(?:\S*,)?cpu(?:,\S*)?:/$|^0::/$", places, re.MULTILINE):
            sessions.pop(pid)  # in a control group of its own: autogroups do not count there
    if len(set(sessions.values())) < 2:
        return None
    return (
        f"processes {', '.join(map(str, sorted(sessions)))} are of different login sessions, and "
        "the kernel's autogroups make nice values count only inside each: set sysctl "
        "kernel.sched_autogroup_enabled=0, or use the translator shares-nice"
    )


def _limit(pid: int, name: str) -> int | None:
    try:
        text = Path(f"/proc/{pid}/limits").read_text()
    except OSError:
        return None
    match = re.search(rf"^{name}\s+(\S+)", text, re.MULTILINE)
    if match is None:
        return None
    return 1 << 30 if match.group(1) == "unlimited" else int(match.group(1))


def _owner(pid: int) -> int | None:
    try:
        return Path(f"/proc/{pid}").stat().st_uid
    except OSError:
        return None
