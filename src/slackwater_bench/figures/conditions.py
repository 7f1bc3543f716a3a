"""Under which conditions a figure was taken: machine, versions, and who else used the machine."""

import os
import platform
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from slackwater.common.procfs import MachineMeter, usable_cpus
from slackwater.core.clock import RealClock

QUIET = 0.1  # of the machine: more that others use disturbs
LOOK_S = 3.0  # at who uses it, before a measurement
PATIENCE_S = 120.0  # until it is begun all the same
EVERY_S = 1.0  # between two looks while it runs: processes must be seen before they are gone
PACKAGES = ("slackwater", "pyspark", "pyarrow", "numpy")


@dataclass
class Conditions:
    """What is to be known of a run before its figures are compared with others."""

    date: str
    commit: str
    machine: dict[str, Any]
    versions: dict[str, str]
    busy_before: float | None = None  # of the machine; None: nobody looked
    took_s: float | None = None
    others_share: float | None = None  # of the machine, while it ran; None: it was not watched

    @property
    def disturbed(self) -> bool:
        """Whether other load may have changed the figures."""
        return max(self.busy_before or 0.0, self.others_share or 0.0) > QUIET

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
    )


def wait_for_quiet(patience_s: float = PATIENCE_S) -> float:
    """Wait until hardly anybody uses the machine, but not for ever; return the share in use."""
    clock, meter = RealClock(), MachineMeter()
    until_s = clock.monotonic() + patience_s
    while True:
        clock.sleep(LOOK_S)
        _, ours, others = meter.look()
        busy = (ours + others) / meter.cores
        if busy <= QUIET or clock.monotonic() >= until_s:
            return round(busy, 3)


@contextmanager
def watched(conditions: Conditions, *, outside: bool) -> Iterator[None]:
    """Note how long something took, and what others used of the machine.

    Parameters
    ----------
    outside
        Parts of the measurement run outside this process's tree, such as a broker: who used what
        is not told.
    """
    ended, cores = threading.Event(), MachineMeter().cores
    took_s = others_s = 0.0

    def look() -> None:
        nonlocal took_s, others_s
        while True:
            # A new one each time: what a JVM has used is gone when nobody waits for it.
            meter = MachineMeter()
            last = ended.wait(EVERY_S)
            seconds, _, others = meter.look()
            took_s += seconds
            others_s += others * seconds
            if last:
                return

    watcher = threading.Thread(target=look, name="slackwater-conditions", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        ended.set()
        watcher.join()
    conditions.took_s = round(took_s, 1)
    if not outside and took_s > 0:
        conditions.others_share = round(others_s / took_s / cores, 3)


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
