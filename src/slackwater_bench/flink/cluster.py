"""A JobManager and TaskManagers, on loopback by default, from ``apache-flink-libraries``."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from slackwater.core.clock import Deadline
from slackwater.core.errors import EngineError, UsageError
from slackwater.engines.outside.http import Endpoint
from slackwater_bench.flink.hosts import Host

START_LIMIT_S = 120.0
_JOB_MANAGER = "org.apache.flink.runtime.entrypoint.StandaloneSessionClusterEntrypoint"
_TASK_MANAGER = "org.apache.flink.runtime.taskexecutor.TaskManagerRunner"
# What Flink's own start scripts open of Java's modules.
OPENS = [
    "--add-exports=java.rmi/sun.rmi.registry=ALL-UNNAMED",
    "--add-exports=java.security.jgss/sun.security.krb5=ALL-UNNAMED",
    *(
        f"--add-opens=java.base/{package}=ALL-UNNAMED"
        for package in (
            "java.lang",
            "java.net",
            "java.io",
            "java.nio",
            "sun.nio.ch",
            "java.lang.reflect",
            "java.text",
            "java.time",
            "java.util",
            "java.util.concurrent",
            "java.util.concurrent.atomic",
            "java.util.concurrent.locks",
        )
    ),
]
# Flink's start scripts work these out; the program itself wants to be told.
_MEMORY = {
    "jobmanager.memory.process.size": "1g",
    "taskmanager.cpu.cores": "2.0",
    "taskmanager.memory.task.heap.size": "1g",
    "taskmanager.memory.task.off-heap.size": "0",
    "taskmanager.memory.framework.heap.size": "128m",
    "taskmanager.memory.framework.off-heap.size": "128m",
    "taskmanager.memory.network.min": "256m",
    "taskmanager.memory.network.max": "256m",
    "taskmanager.memory.managed.size": "128m",
    "taskmanager.memory.jvm-metaspace.size": "384m",
    "taskmanager.memory.jvm-overhead.min": "256m",
    "taskmanager.memory.jvm-overhead.max": "256m",
}
# A text of all metrics is megabytes; these are what a driver reads.
_REPORTED = "taskmanager.job.task:numRecordsIn,numRecordsOut"


def find_flink() -> Path:
    """Find the folder with ``lib`` and ``plugins``: ``SLACKWATER_FLINK``, or beside this Python."""
    named = os.environ.get("SLACKWATER_FLINK")
    folder = Path(named) if named else Path(sys.prefix) / "flink" / "pyflink"
    if not (folder / "lib").is_dir():
        raise UsageError(
            f"no Flink in {folder}: run scripts/flink.sh, or set SLACKWATER_FLINK to a folder with "
            "Flink's lib and plugins"
        )
    return folder


def kafka_connector() -> Path:
    """Find the jar that has Flink read and write Kafka, which ``scripts/flink.sh`` fetches."""
    folder = Path(os.environ.get("VENV", sys.prefix)) / "flink-kafka"
    jar = next(folder.glob("flink-sql-connector-kafka-*.jar"), None)
    if jar is None:
        raise UsageError(
            "no Kafka connector of Flink: `sh scripts/flink.sh` fetches one, with Maven; or leave "
            "flink out"
        )
    return jar


def classpath(home: Path, jars: Iterable[Path] = ()) -> str:
    """Return Flink's own jars and others."""
    return os.pathsep.join([f"{home}/lib/*", *map(str, jars)])


def java(*options: str, classpath: str, main: str) -> list[str]:
    """Return a command that runs a class of Flink's."""
    from slackwater.engines.spark.session.java import find_java

    return [str(find_java()), *options, *OPENS, "-cp", classpath, main]


class LocalFlink:
    """Starts with the ``with`` block and ends with it.

    Parameters
    ----------
    slots
        Jobs of parallelism one that fit on each host.
    conf
        Flink's configuration, beyond or instead of ours.
    home
        See :func:`find_flink`.
    hosts
        With a TaskManager each; the JobManager runs on the first.
    jars
        Of connectors.
    """

    def __init__(
        self,
        slots: int = 40,
        conf: Mapping[str, str] | None = None,
        home: Path | None = None,
        hosts: Sequence[Host] = (Host(),),
        jars: Sequence[Path] = (),
    ) -> None:
        self._jars = jars
        self.home = find_flink() if home is None else home
        self._hosts = hosts
        self._folder = tempfile.TemporaryDirectory(prefix="slackwater-flink-")
        rest, rpc, reporter = _free_ports(3)
        first = hosts[0].address
        self.rest = f"http://{first}:{rest}"
        self.prometheus = [f"http://{host.address}:{reporter}" for host in hosts]
        self._conf = {
            "jobmanager.rpc.address": first,
            "jobmanager.rpc.port": str(rpc),
            "jobmanager.bind-host": first,
            "taskmanager.numberOfTaskSlots": str(slots),
            "rest.address": first,
            "rest.bind-address": first,
            "rest.port": str(rest),
            "taskmanager.load-balance.mode": "SLOTS",  # copies of a job on different hosts
            "metrics.fetcher.update-interval": "1000",
            "metrics.reporter.prom.factory.class": (
                "org.apache.flink.metrics.prometheus.PrometheusReporterFactory"
            ),
            "metrics.reporter.prom.filter.includes": _REPORTED,
            **_MEMORY,
            **(conf or {}),
        }
        self._reporter_port = reporter
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []

    @property
    def folder(self) -> Path:
        return Path(self._folder.name)

    @property
    def printed(self) -> Path:
        """What the first TaskManager wrote: its log, and the rows of every ``print`` table."""
        return self.folder / f"{_log_name(0)}.log"

    @property
    def task_manager_pid(self) -> int:
        return self._processes[1].pid

    def __enter__(self) -> Self:
        lines = "".join(f"{key}: {value}\n" for key, value in self._conf.items())
        (self.folder / "config.yaml").write_text(lines)
        try:
            self._start(_JOB_MANAGER, "job-manager", self._hosts[0], ["-Xmx512m"])
            for number in range(len(self._hosts)):
                self.start_task_manager(number)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def _end(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()
        for log in self._logs:
            log.close()
        self._folder.cleanup()

    def start_task_manager(self, number: int = 0) -> None:
        """Start it the first time, and again after :meth:`stop_task_manager`."""
        host = self._hosts[number]
        own = {
            "taskmanager.host": host.address,
            "taskmanager.bind-host": host.address,
            "metrics.reporter.prom.port": self._reporter_port,
        }
        self._start(
            _TASK_MANAGER,
            _log_name(number),
            host,
            ["-Xmx1152m", "-Xms1152m"],
            [f"-D{key}={value}" for key, value in own.items()],
        )
        endpoint = Endpoint(self.rest)
        ready = Deadline(START_LIMIT_S).wait_for(
            lambda: self._ready(endpoint, number + 1) or self._ended(), every_s=0.1
        )
        if not ready or self._ended():
            raise EngineError(f"Flink did not start: {self._last_words()}")
        endpoint.close()

    def _ended(self) -> bool:
        return any(process.poll() is not None for process in self._processes)

    def stop_task_manager(self) -> None:
        """Kill it as a crash does."""
        process = self._processes.pop()
        process.kill()
        process.wait()

    def _start(
        self, main: str, name: str, host: Host, options: list[str], after: Sequence[str] = ()
    ) -> None:
        log = (self.folder / f"{name}.log").open("ab")
        command = java(*options, classpath=classpath(self.home, self._jars), main=main)
        environment = {**os.environ, "FLINK_PLUGINS_DIR": str(self.home / "plugins")}
        self._logs.append(log)
        self._processes.append(
            subprocess.Popen(
                [*host.prefix, *command, "--configDir", str(self.folder), *after],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )
        )

    def _ready(self, endpoint: Endpoint, managers: int) -> bool:
        try:
            return bool(endpoint.json("/overview")["taskmanagers"] >= managers)
        except (EngineError, KeyError):
            return False

    def _last_words(self) -> str:
        for log in sorted(self.folder.glob("*.log")):
            lines = log.read_text(errors="replace").strip().splitlines()
            if lines:
                return lines[-1][:300]
        return f"no answer at {self.rest} for {START_LIMIT_S:.0f} s"


def _log_name(number: int) -> str:
    return f"task-manager-{number}"


def _free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    return ports
