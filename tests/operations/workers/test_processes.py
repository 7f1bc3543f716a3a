"""`slackwater fleet` as users run it: supervisor and workers die, and results are right."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from slackwater.operations.workers.processes import WorkerProcess, WorkerProcesses
from tests.fleet_process import FleetProcess
from tests.waiting import eventually

pytestmark = pytest.mark.spark

# More cores than there are: it is not CPU that decides where queries are in these tests.
WORKERS = """
[workers.w1]
cores = 8
[workers.w2]
cores = 8
"""


class SupervisedFleet(FleetProcess):
    """Two queries on two workers, in many small micro-batches: something is always under way."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, queries=2, master="local[1]", seconds=40, rows_per_batch=400)
        self.path = folder / "fleet.toml"
        self.path.write_text(self.path.read_text() + WORKERS)

    def prefer(self, query: str, worker: str) -> None:
        """Say in the file where a query should be."""
        section = f"[queries.{query}]\n"
        text = self.path.read_text().replace(section, f"{section}workers = ['{worker}']\n")
        (self.folder / "draft").write_text(text)
        os.replace(self.folder / "draft", self.path)

    def start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "slackwater.cli", "fleet", "--watch", "status"],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env=os.environ | {"SLACKWATER_RUNTIME_DIR": str(self.folder)},
                start_new_session=True,
            )

    def workers(self) -> dict[str, WorkerProcess]:
        return WorkerProcesses(self.folder / "slackwater" / "test.workers.json").by_name

    def kill_workers(self, *names: str) -> None:
        """-9 for them and all they started."""
        for name in names:
            os.killpg(self.workers()[name].pid, signal.SIGKILL)

    def kill_spark(self, pid: int) -> None:
        """-9 for the JVM of a worker, as when the machine runs out of memory."""
        (jvm,) = [each for each in psutil.Process(pid).children() if each.name() == "java"]
        jvm.kill()

    def committed(self, query: str) -> int:
        return len([*self.folder.glob(f"out/{query}/_spark_metadata/[0-9]*")])

    def runs_on(self, since_s: float) -> dict[str, str]:
        """Workers of the queries that run, as a supervisor has said since then."""
        try:
            last = json.loads((self.folder / "status").read_text().splitlines()[-1])
        except (OSError, IndexError, ValueError):
            return {}
        rows = [row for row in last["queries"] if row["phase"] == "running"]
        return {row["query"]: row["worker"] for row in rows} if last["at_s"] > since_s else {}

    def runs_without(self, pid: int) -> bool:
        """Whether others than this process, which may still be dying, run all queries."""
        found = self.where()
        return len(found) == len(self.workloads) and pid not in found.values()

    def where(self) -> dict[str, int]:
        """Pids of the processes that hold the locks of queries."""
        found: dict[str, int] = {}
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

    from slackwater.ipc.framing import ProtocolError
    from slackwater.operations.workers.channel import join

    text = fleet.path.read_text().replace("cores = 8", "cores = 8\nremote = true")
    fleet.path.write_text(text)
    fleet.start()
    path = fleet.folder / "slackwater" / "test.workers.sock"
    eventually(path.exists, 60)
    assert path.stat().st_mode & 0o777 == 0o600
    stranger = socket.socket(socket.AF_UNIX)
    stranger.connect(str(path))
    with pytest.raises(ProtocolError):
        join(stranger, b"another token, not the fleet's", "w1")
    garbled = socket.socket(socket.AF_UNIX)
    garbled.connect(str(path))
    garbled.sendall(json.dumps(["nothing"]).encode() + b"\n")
    eventually(lambda: fleet.log().count("refused:") >= 2, 30)
    assert fleet.interrupt() == 0


@pytest.mark.timeout(900)
def test_moves_and_deaths_of_workers_and_supervisors_lose_and_double_nothing(
    spark: SparkSession, fleet: SupervisedFleet
) -> None:
    names = list(fleet.workloads)
    fleet.start()
    eventually(lambda: all(fleet.committed(name) >= 2 for name in names), 300)
    pids = {worker: process.pid for worker, process in fleet.workers().items()}
    assert set(fleet.where().values()) == set(pids.values()), "each worker has one query"

    (there,) = [worker for worker, pid in pids.items() if pid == fleet.where()["q1"]]
    before = fleet.committed("q0")
    fleet.prefer("q0", there)  # a move: stop, checkpoint, start elsewhere
    eventually(lambda: fleet.where() == dict.fromkeys(names, pids[there]), 120)
    eventually(lambda: fleet.committed("q0") > before, 120)

    fleet.kill_workers(there)
    eventually(lambda: fleet.runs_without(pids[there]), 180)

    fleet.kill()  # the supervisor alone: queries go on
    held, killed_s = fleet.where(), time.time()
    before = sum(map(fleet.committed, names))
    eventually(lambda: sum(map(fleet.committed, names)) > before, 120)
    fleet.start()
    eventually(lambda: len(fleet.runs_on(killed_s)) == len(names), 120)
    assert fleet.where() == held, "a query was interrupted"

    fleet.kill_spark(held["q0"])
    eventually(lambda: fleet.runs_without(held["q0"]), 180)

    fleet.kill()
    fleet.kill_workers(*fleet.workers())
    fleet.start()
    eventually(lambda: fleet.missing(spark) == 0, 300, 1.0)
    assert fleet.mistakes(spark) == []
    workers = fleet.workers()
    assert fleet.interrupt() == 0
    assert not any(process.alive for process in workers.values())
