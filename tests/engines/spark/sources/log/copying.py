"""A driver of its own that copies a source to files until it is killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from slackwater.spark import kafka_topic, redis_stream, session
from tests.engines.spark.sources.log.running import writer
from tests.root import ROOT


class CopyProcess:
    """Runs this module as a process, with its JVM and all Python processes."""

    def __init__(self, source: str, address: str, out: Path) -> None:
        self._arguments = [source, address, str(out)]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, *self._arguments],
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
            cwd=Path(self._arguments[-1]).parent,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None


def main(source: str, address: str, out: str) -> None:
    spark = session("copying", "local[2]")
    if source == "redis":
        rows = redis_stream(spark, address, ["a", "b"], schema="number long", rows_per_batch=300)
    else:
        rows = kafka_topic(spark, address, "t", schema="number long", rows_per_batch=300)
    writer(rows, Path(out)).start().awaitTermination()


if __name__ == "__main__":
    main(*sys.argv[1:])
