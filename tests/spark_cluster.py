"""A standalone cluster on loopback, from the pip package."""

import os
import re
import signal
import subprocess
from pathlib import Path

import psutil
import pyspark

from tests.waiting import eventually

SPARK_HOME = Path(pyspark.__file__).parent


class Cluster:
    """A master and two workers on loopback, started from the pip package."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.master = self._daemon("master", "master.Master", "--port", "0")
        eventually(lambda: self._url() is not None, limit_s=60)
        self.url = self._url() or ""
        resources = ("-c", "1", "-m", "1g", "-d", str(folder / "work"))
        self.workers = [
            self._daemon(f"worker{n}", "worker.Worker", *resources, self.url) for n in range(2)
        ]

    def _url(self) -> str | None:
        found = re.search(r"spark://127\.0\.0\.1:\d+", (self.folder / "master").read_text())
        return found[0] if found else None

    def _daemon(self, name: str, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}"]
        command += ["--host", "127.0.0.1", "--webui-port", "0", *arguments]
        environment = os.environ | {
            "SPARK_HOME": str(SPARK_HOME),
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self.folder / name).open("wb") as log:
            return subprocess.Popen(command, stdout=log, stderr=log, env=environment)

    def kill_worker(self) -> None:
        """-9 for a worker and the executor below it."""
        victim = psutil.Process(self.workers[0].pid)
        for process in [*victim.children(recursive=True), victim]:
            process.send_signal(signal.SIGKILL)

    def runs(self, program: str) -> bool:
        """Tell whether some executor has started this."""
        work = str(self.folder / "work")
        return any(
            (process.info["cmdline"] or [])[:1] == [program]
            and (process.info["cwd"] or "").startswith(work)
            for process in psutil.process_iter(["cmdline", "cwd"])
        )

    def close(self) -> None:
        for daemon in (*self.workers, self.master):
            for child in psutil.Process(daemon.pid).children(recursive=True):
                child.kill()
            daemon.kill()
            daemon.wait()


def spark_submit(*arguments: str) -> list[str]:
    """Return a command of Spark's own."""
    return [str(SPARK_HOME / "bin" / "spark-submit"), *arguments]
