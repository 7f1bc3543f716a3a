"""`slackwater run` on a windowed count over files, whose driver is killed."""

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Self

from pyspark.sql import SparkSession

from tests.root import ROOT
from tests.versions.files import write_files


class KilledDriver:
    """The driver, its JVM and all Python processes; whatever happens, they end with the block."""

    def __init__(self, folder: Path, gate: str, files: int) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        source = write_files(folder / "in", files)
        (folder / "fleet.toml").write_text(
            f"policy = 'fcfs'\ngate = '{gate}'\nname = 'versions'\n"
            "[spark]\nmaster = 'local[2]'\n[spark.conf]\n'spark.sql.shuffle.partitions' = 2\n"
            "[queries.counted]\nquery = 'tests.versions.pipeline:counted'\nformat = 'parquet'\n"
            f"path = 'out'\narguments = {{ folder = '{source}' }}\n"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()

    def start(self) -> None:
        environment = {"SLACKWATER_RUNTIME_DIR": str(self._folder), "PYTHONPATH": str(ROOT)}
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "slackwater.cli", "run"],
                cwd=self._folder,
                stdout=log,
                stderr=log,
                env=os.environ | environment,
                start_new_session=True,
            )

    def kill(self) -> None:
        """-9 for the whole group."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def batches(self) -> int:
        """Return how many the sink has committed."""
        log = self._folder / "out" / "_spark_metadata"
        return sum(1 for path in log.glob("*") if path.name[0].isdigit())

    def rows(self, spark: SparkSession) -> Counter[Any]:
        """Return what is in the sink."""
        assert self._process is not None
        assert self._process.poll() is None, (self._folder / "log").read_text()
        if not self.batches():
            return Counter()
        schema = "end long, key long, count long"
        frame = spark.read.schema(schema).parquet(str(self._folder / "out"))
        return Counter(tuple(row) for row in frame.collect())
