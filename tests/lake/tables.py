"""Tables of events with known counts, and fleets that count them."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

from slackwater.common.subprocesses import child_environment
from slackwater.engines.spark.checkpoints.files import hadoop_folder
from tests.driver_process import DriverProcess
from tests.versions.files import counted, rows_of


def append(spark: SparkSession, place: str, number: int) -> None:
    """Add the rows of one file to a Delta table, as one version."""
    rows = spark.createDataFrame(rows_of(number), "ms long, key long").coalesce(1)
    rows.write.format("delta").mode("append").save(place)


def copy(spark: SparkSession, source: str, target: str) -> None:
    """Copy a folder to another file system."""
    origin, goal = hadoop_folder(source, spark), hadoop_folder(target, spark)
    for name in origin.files():
        origin.copy(name, goal, name)


def counts(spark: SparkSession, source: str) -> DataFrame:
    """Count the events of each window and key of a Delta table, a version a batch."""
    reader = spark.readStream.format("delta").option("startingVersion", 0)
    return counted(reader.option("maxFilesPerTrigger", 1).load(source))


def rows(spark: SparkSession, kind: str, place: str) -> Counter[Any]:
    """Return what a sink has; nothing, before it has begun."""
    try:
        return Counter(tuple(row) for row in spark.read.format(kind).load(place).collect())
    except AnalysisException:
        return Counter()


class Fleet(DriverProcess):
    """A fleet file of any queries, with the settings of a session."""

    def __init__(self, folder: Path, head: str, conf: dict[str, str], queries: str) -> None:
        super().__init__(folder)
        settings = "".join(f"{json.dumps(key)} = {json.dumps(v)}\n" for key, v in conf.items())
        (folder / "fleet.toml").write_text(
            f"{head}\n[spark]\nmaster = 'local[2]'\n[spark.conf]\n{settings}\n{queries}"
        )

    def command(self, *words: str) -> str:
        """Return what another command of `slackwater` says here."""
        done = subprocess.run(
            [sys.executable, "-m", "slackwater.cli", *words],
            cwd=self.folder,
            env=child_environment(SLACKWATER_RUNTIME_DIR=str(self.folder)),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout
