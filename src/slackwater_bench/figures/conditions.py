"""Under which conditions a figure was taken: machine, versions, and who else used the machine."""

import os
import platform
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from slackwater.common.procfs import MachineMeter, usable_cpus

QUIET_LOAD = 1.0  # processes that want to run, before the measurement
QUIET_SHARE = 0.1  # of the machine, that others took meanwhile
PACKAGES = ("slackwater", "pyspark", "pyarrow", "numpy")


@dataclass
class Conditions:
    """What is to be known of a run before its figures are compared with others."""

    date: str
    commit: str
    machine: dict[str, Any]
    versions: dict[str, str]
    load_before: float
    took_s: float | None = None
    others_share: float | None = None  # of the machine, while it ran; None: it was not watched

    @property
    def disturbed(self) -> bool:
        """Whether other load may have changed the figures."""
        return self.load_before > QUIET_LOAD or (self.others_share or 0.0) > QUIET_SHARE

    def to_json(self) -> dict[str, Any]:
        """Return it as result files have it."""
        return asdict(self) | {"disturbed": self.disturbed}


def conditions_now(root: Path) -> Conditions:
    """Return the conditions at the beginning of a run of this checkout."""
    return Conditions(
        date=time.strftime("%Y-%m-%d"),
        commit=_commit(root),
        machine={
            "cores": len(usable_cpus()),
            "memory_gb": round(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9),
            "processor": _processor(),
            "kernel": platform.release(),
        },
        versions={"python": platform.python_version()} | {name: version(name) for name in PACKAGES},
        load_before=round(os.getloadavg()[0], 2),
    )


@contextmanager
def watched(conditions: Conditions, *, outside: bool) -> Iterator[None]:
    """Note how long something took, and what others used of the machine.

    Parameters
    ----------
    outside
        Parts of the measurement run outside this process's tree, such as a broker: who used what
        is not told.
    """
    meter = MachineMeter()
    yield
    seconds, _, others = meter.look()
    conditions.took_s = round(seconds, 1)
    if not outside:
        conditions.others_share = round(others / meter.cores, 3)


def _commit(root: Path) -> str:
    """Return which code was measured; what was not committed is told by a plus."""
    try:
        found = subprocess.run(
            ["git", "describe", "--always", "--dirty=+"],
            cwd=root, capture_output=True, text=True, check=True,
        )  # fmt: skip
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
