"""The three processes of a fleet over Spark Connect: the server, a controller, a client."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

import pyspark

from slackwater.ipc.client import answers
from slackwater_bench.kafka_broker import free_ports
from tests.root import ROOT
from tests.waiting import eventually

SPARK_HOME = Path(pyspark.__file__).parent


class Process:
    """A command in a session of its own, which ends with the block, whatever happens."""

    def __init__(self, folder: Path, name: str, *command: str, **environment: str) -> None:
        self.log_file = folder / f"{name}.log"
        places = {"SLACKWATER_RUNTIME_DIR": str(folder), "PYTHONPATH": str(ROOT)}
        with self.log_file.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=os.environ | places | environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._process.poll() is None:
            self.kill()

    def log(self) -> str:
        return self.log_file.read_text()

    def is_running(self) -> bool:
        assert self._process.poll() is None, self.log()
        return True

    def kill(self) -> None:
        """-9 for it and all that it has started."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> int:
        """Close its standard input, which is how clients are told to end; its exit status."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        return self._process.wait(timeout=60)

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        return self._process.wait(timeout=60)


class Server(Process):
    """A Connect server on loopback, started by Spark's own script."""

    def __init__(self, folder: Path) -> None:
        port, _ = free_ports()
        self.url = f"sc://127.0.0.1:{port}"
        conf = {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.session.timeZone": "UTC",
            "spark.ui.enabled": "false",
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
        options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
        script = SPARK_HOME / "sbin" / "start-connect-server.sh"
        super().__init__(
            folder,
            "server",
            *("bash", str(script), "--wait", "--master", "local[2]", *options),
            SPARK_HOME=str(SPARK_HOME),
            SPARK_LOCAL_IP="127.0.0.1",
            SPARK_LOG_DIR=str(folder),
            SPARK_PID_DIR=str(folder),
            PYSPARK_PYTHON=sys.executable,
        )
        eventually(lambda: self.is_running() and _listens(port), limit_s=120, pause_s=0.2)


class ControllerCommand(Process):
    """``slackwater controller``."""

    def __init__(self, folder: Path, name: str, policy: str) -> None:
        self.socket = folder / "slackwater" / f"{name}.sock"
        command = (sys.executable, "-m", "slackwater.cli", "controller", name, "--policy", policy)
        super().__init__(folder, f"controller-{name}", *command)
        eventually(lambda: self.is_running() and answers(self.socket), limit_s=60)


class Client(Process):
    """One query over files, behind a gate, by a Connect session."""

    def __init__(self, folder: Path, server: Server, name: str, *arguments: str | Path) -> None:
        command = (sys.executable, "-m", "tests.engines.spark.connect_client", server.url, name)
        super().__init__(folder, f"client-{name}", *command, *map(str, arguments))


def _listens(port: int) -> bool:
    with socket.socket() as tried:
        return tried.connect_ex(("127.0.0.1", port)) == 0
