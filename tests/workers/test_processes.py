"""`slackwater fleet` as users run it: supervisor and workers die, and results are right."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from slackwater.workers.roster import Roster, WorkerProcess
from tests.fleet_process import FleetProcess
from tests.waiting import eventually

pytestmark = pytest.mark.spark

WORKERS = """
[workers.w1]
cores = 1
[workers.w2]
cores = 1
"""


class SupervisedFleet(FleetProcess):
    """Two queries on two workers."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, queries=2, master="local[1]", seconds=40)
        path = folder / "fleet.toml"
        path.write_text(path.read_text() + WORKERS)

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "slackwater.cli", "fleet"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(self.folder)},
                start_new_session=True,
            )

    def workers(self) -> dict[str, WorkerProcess]:
        return Roster(self.folder / "slackwater" / "test.workers.json").processes

    def kill_workers(self, *names: str) -> None:
        """-9 for them and all they started."""
        for name in names:
            os.killpg(self.workers()[name].pid, signal.SIGKILL)

    def committed(self, query: str) -> int:
        return len([*self.folder.glob(f"out/{query}/_spark_metadata/[0-9]*")])

    def where(self) -> dict[str, int]:
        """Pids of the processes that hold the locks of queries."""
        found = {}
        for line in Path("/proc/locks").read_text().splitlines():
            fields = line.split()
            inode = int(fields[5].rpartition(":")[2])
            for name in self.workloads:
                lock = self.folder / "checkpoints" / name / "slackwater.lock"
                if lock.exists() and lock.stat().st_ino == inode:
                    found[name] = int(fields[4])
        return found


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[SupervisedFleet]:
    made = SupervisedFleet(tmp_path)
    yield made
    if made.process is not None and made.process.poll() is None:
        made.kill()
    for process in made.workers().values():
        process.end_group()


def test_a_stranger_is_refused_and_that_is_logged(fleet: SupervisedFleet) -> None:
    """Over the fleet's own socket, with a token of one's own."""
    import socket

    from slackwater.workers.channel import ChannelError, join

    text = (fleet.folder / "fleet.toml").read_text()
    text = text.replace("cores = 1", "cores = 1\nremote = true")
    (fleet.folder / "fleet.toml").write_text(text)
    fleet.start()
    path = fleet.folder / "slackwater" / "test.workers.sock"
    eventually(path.exists, 60)
    assert path.stat().st_mode & 0o777 == 0o600
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(str(path))
    with pytest.raises(ChannelError):
        join(stranger, b"another token, not the fleet's", "w1")
    garbled = socket.socket(socket.AF_UNIX)
    garbled.connect(str(path))
    garbled.sendall(json.dumps(["nothing"]).encode() + b"\n")
    eventually(lambda: fleet.log().count("refused:") >= 2, 30)
    assert fleet.interrupt() == 0
