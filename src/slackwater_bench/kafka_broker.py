"""A real Kafka broker on loopback: one node, from the jars that ``scripts/kafka.sh`` fetches."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from slackwater.core.clock import Deadline
from slackwater.core.errors import EngineError, UsageError

if TYPE_CHECKING:
    from confluent_kafka import Producer

JARS = Path(os.environ.get("VENV", sys.prefix)) / "kafka"  # VENV: from an environment beside
# What Spark needs to read from it.
CONNECTOR = ("spark-sql-kafka-*", "spark-token-provider-kafka-*", "kafka-clients-*", "*pool2-*")
START_S = 60.0
# It lives for minutes beside what is measured: to compile its code twice would not pay.
_LEAN = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")


def why_missing() -> str | None:
    """Return what a broker lacks here, and how it is had; None: nothing."""
    if importlib.util.find_spec("confluent_kafka") is None:
        return "no client of Kafka: pip install 'slackwater[kafka]'"
    if not (JARS / "complete").exists():
        return "no Kafka broker: `sh scripts/kafka.sh` fetches one, with Maven"
    if shutil.which(_java()) is None:
        return "no Java: Spark and a Kafka broker need it (JAVA_HOME, or java in PATH)"
    return None


def require() -> None:
    """Refuse to go on where no broker can be started."""
    if (missing := why_missing()) is not None:
        raise UsageError(missing)


def connector_jars() -> list[str]:
    """Return the jars that Spark needs to read from a broker."""
    return [str(jar) for pattern in CONNECTOR for jar in JARS.glob(f"{pattern}.jar")]


class KafkaBroker:
    """Broker and controller in one process.

    Parameters
    ----------
    folder
        Where it keeps everything.
    """

    def __init__(self, folder: Path) -> None:
        require()
        from confluent_kafka.admin import AdminClient

        clients, peers = free_ports()
        self.address = f"127.0.0.1:{clients}"
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "controller.quorum.voters": f"1@127.0.0.1:{peers}",
            "listeners": f"PLAINTEXT://{self.address},CONTROLLER://127.0.0.1:{peers}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(folder / "data"),
            "log.retention.ms": "-1",  # rows of years ago are written, too
            "log.cleaner.backoff.ms": "500",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
        }
        self._written = folder / "server.properties"
        self._written.write_text("\n".join(f"{key}={value}" for key, value in settings.items()))
        self._log = (folder / "log").open("wb")
        named = ("format", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAQ", "--config", str(self._written))
        self._start("kafka.tools.StorageTool", *named).wait()
        self.admin = AdminClient({"bootstrap.servers": self.address, "log_level": 0})
        self.start()

    @property
    def pid(self) -> int:
        """The number of its process."""
        return self._process.pid

    def start(self) -> None:
        """Start it, also again after it was killed, and wait until it answers."""
        self._process = self._start("kafka.Kafka", str(self._written))
        if not Deadline(START_S).wait_for(self._answers, every_s=0.1):
            self.kill()
            raise EngineError(f"the Kafka broker did not answer within {START_S:g} s")

    def _start(self, main: str, *arguments: str) -> subprocess.Popen[bytes]:
        command = [_java(), *_LEAN, "-cp", f"{JARS}/*", main, *arguments]
        return subprocess.Popen(command, stdout=self._log, stderr=self._log)

    def _answers(self) -> bool:
        from confluent_kafka import KafkaException

        if self._process.poll() is not None:
            raise EngineError("the Kafka broker has ended")
        try:
            return bool(self.admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False

    def create(self, topic: str, partitions: int = 1, **settings: str) -> None:
        """Make a topic; settings with ``_`` for each dot of their names."""
        from confluent_kafka.admin import NewTopic  # type: ignore[attr-defined]

        config = {name.replace("_", "."): text for name, text in settings.items()}
        made = NewTopic(topic, partitions, 1, config=config)
        self.admin.create_topics([made])[topic].result(30)

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions."""
        from confluent_kafka.admin import NewPartitions  # type: ignore[attr-defined]

        self.admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)

    def producer(self, **settings: str) -> "Producer":
        """Return a producer that writes each row once."""
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.address, "enable.idempotence": True} | settings)

    def kill(self) -> None:
        """Kill it (-9); what it has written stays, and :meth:`start` has it go on."""
        self._process.kill()
        self._process.wait()

    def stop(self) -> None:
        """Kill it for good."""
        self.kill()
        self._log.close()


def free_ports() -> tuple[int, int]:
    """Return two ports of loopback that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as b:
        return one.getsockname()[1], b.getsockname()[1]


def _java() -> str:
    """Return the Java that Spark takes."""
    home = os.environ.get("JAVA_HOME")
    return f"{home}/bin/java" if home else "java"
