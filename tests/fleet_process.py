"""`slackwater run` as users run it: a process of its own, on a fleet file of YSB queries."""

import signal
import time
from pathlib import Path

import psutil
from pyspark.sql import SparkSession

from slackwater.traffic import Traffic
from slackwater_bench.workloads.base import WindowRows, collect_windows, differences
from slackwater_bench.workloads.ysb import Ysb
from tests.driver_process import DriverProcess
from tests.packed_environment import PYTHON
from tests.spark_cluster import SPARK_HOME, spark_submit

PIPELINE = """
from slackwater.traffic import Traffic
from slackwater_bench.workloads.ysb import Ysb

def workload(seed, start, stop):
    traffic = Traffic(start_s=start, stop_s=stop, rate="1000", delays="uniform:0:300ms", seed=seed)
    return Ysb(traffic=traffic, campaigns=10)

def ysb(spark, seed, start, stop, rows):
    return workload(seed, start, stop).query(spark, rows_per_batch=rows)
"""


class FleetProcess(DriverProcess):
    """Queries over events of the last minute, so that nothing has to be waited for."""

    def __init__(
        self,
        folder: Path,
        *,
        policy: str = "fcfs",
        gate: str = "auto",
        queries: int = 2,
        master: str | None = "local[2]",
        seconds: int = 30,
        rows_per_batch: int = 1500,
    ) -> None:
        super().__init__(folder)
        start = float(int(time.time()) - 60)
        stop = start + seconds
        self.workloads = {
            f"q{seed}": Ysb(
                traffic=Traffic(
                    start_s=start,
                    stop_s=start + seconds,
                    rate="1000",
                    delays="uniform:0:300ms",
                    seed=seed,
                ),
                campaigns=10,
            )
            for seed in range(queries)
        }
        self.start_us = round(start * 1e6)
        self.until_us = round((start + seconds - 4) * 1e6)  # windows that surely close
        sections = "".join(
            f"[queries.{name}]\nquery = 'pipeline:ysb'\nformat = 'parquet'\npath = 'out/{name}'\n"
            f"arguments = {{ seed = {w.traffic.seed}, start = {start}, stop = {stop}, "
            f"rows = {rows_per_batch} }}\n"
            for name, w in self.workloads.items()
        )
        (folder / "pipeline.py").write_text(PIPELINE)
        (folder / "fleet.toml").write_text(
            f"policy = '{policy}'\ngate = '{gate}'\nname = 'test'\n"
            f"[spark]\n{'' if master is None else f'master = {master!r}'}\n"
            "[spark.conf]\n'spark.sql.shuffle.partitions' = 2\n'spark.executor.memory' = '600m'\n"
            + sections
        )

    def is_over(self) -> bool:
        return self.process is not None and self.process.poll() is not None

    def interrupt(self) -> int:
        """Ctrl-C; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)

    def commits(self) -> int:
        """Batches that all sinks together have committed."""
        return sum(1 for p in self.folder.glob("out/*/_spark_metadata/*") if p.name[0].isdigit())

    def written(self, spark: SparkSession, name: str) -> WindowRows:
        if not any((self.folder / "out" / name / "_spark_metadata").glob("[0-9]*")):
            return {}
        frame = spark.read.schema(
            "window_start timestamp, window_end timestamp, campaign_id string, count long"
        ).parquet(str(self.folder / "out" / name))
        return collect_windows(frame, Ysb.columns)

    def missing(self, spark: SparkSession) -> int:
        """Windows that should have come and have not."""
        return sum(
            len(set(w.window_ends(self.start_us, self.until_us)) - set(self.written(spark, name)))
            for name, w in self.workloads.items()
        )

    def mistakes(self, spark: SparkSession) -> list[str]:
        """Differences from the ground truth over everything that was written."""
        found: list[str] = []
        for name, workload in self.workloads.items():
            written = self.written(spark, name)
            truth = workload.truth(self.start_us, max(written))
            found += [f"{name}: {line}" for line in differences(truth, written)]
        return found


class SubmittedFleet(FleetProcess):
    """The same by ``spark-submit``, with an environment that executors get as an archive."""

    def __init__(self, folder: Path, master: str, archive: Path) -> None:
        super().__init__(folder, master=None)
        (folder / "shipped").mkdir()
        (folder / "pipeline.py").rename(folder / "shipped" / "pipeline.py")
        (folder / "run.py").write_text("from slackwater.cli.main import main\n\nmain()\n")
        self._master, self._archive = master, archive

    def start(self) -> None:
        shipped = ("--archives", f"{self._archive}#environment")
        shipped += ("--py-files", "shipped/pipeline.py")
        command = spark_submit("--master", self._master, *shipped, "run.py", "run")
        self._start(
            command, SPARK_HOME=str(SPARK_HOME), SPARK_LOCAL_IP="127.0.0.1", PYSPARK_PYTHON=PYTHON
        )

    def interrupt(self) -> int:
        """SIGINT for Python alone: the JVM above it would end at once, and not wait for it."""
        assert self.process is not None
        for child in psutil.Process(self.process.pid).children():
            child.send_signal(signal.SIGINT)
        return self.process.wait(timeout=60)
